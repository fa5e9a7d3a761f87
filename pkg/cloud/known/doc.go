// Package known remembers what a cloud has said for certain, so that a read which is older than that takes nothing
// back.
//
// A read of a cloud may be late, and a later one older than an earlier one. That a thing is absent from a read proves
// nothing: it may be too new for it. That a read shows a thing proves nothing either once the cloud has confirmed its
// deletion. What lasts is the answer to a request that changes something: IDs are never given out again, and a deletion
// or detachment that is refused because there is nothing proves that. It lasts for longer than a read may be late, and
// no longer: people can bring back what was deleted, such as snapshots from EC2's Recycle Bin.
//
// What is remembered spares requests too: whose a thing is need not be asked again before it is deleted.
package known
