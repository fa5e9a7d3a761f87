// Package flight runs one operation per object at a time while callers come and go.
//
// A caller that gives up does not undo what it has sent. The cloud may be working on it, and a later request may
// overtake it. A Group therefore reserves the object until the operation has returned, even if its caller leaves
// earlier. An operation sends changes under a context of its own (Finish), so that it always learns the outcome. A
// request that is still waiting for its turn is not sent once its caller has left (Turn).
//
// When all callers of an operation have left, its context ends. The operation then stops as soon as it is only waiting.
// Its callers do not hear how it ends, so it records the failures of its requests (Because) for those that leave.
package flight
