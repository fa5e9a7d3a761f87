// Package flight keeps one operation a thing while callers come and go.
//
// A caller that gives up does not undo what it has sent: the cloud may be at work on it, and whatever is sent after it
// may overtake it. A Group therefore keeps the thing reserved until the operation has returned, not until its caller
// has, and an operation sends what changes something under a context of its own (Finish), so that it always learns what
// came of it. What only waits for its turn to be sent is not sent any more once its caller has left (Turn).
//
// An operation whose callers have all left is told so by its context, and ends as soon as it merely waits.
package flight
