// Package known remembers facts that a cloud has confirmed, so that an older read does not undo them.
//
// A read of a cloud may be late, and a later read may show an older state than an earlier one. A thing's absence from a
// read proves nothing: the thing may be too new for it. Its presence proves nothing either once the cloud has confirmed
// its deletion. The answer to a request that changes something is reliable: IDs are never reused, and a refusal to
// delete or detach because nothing exists proves just that. The fact is kept for longer than a read may be late, but
// not longer: people can bring back deleted things, such as snapshots from EC2's Recycle Bin.
//
// The memory saves requests too: a thing's owner, if it was shown a moment ago, is not looked up again before its
// deletion.
package known
