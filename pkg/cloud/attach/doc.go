// Package attach takes volumes from detached to attached and back, as the attach/detach proposal asks:
//
//   - one operation a volume at a time; the same one asked for twice is one operation with two callers;
//   - attached here is attached, not attached is detached, whoever did it;
//   - what the cloud attaches to one node is never asked to be attached to a second one: that is InUse, with the
//     node's name. Nothing here keeps for one node what the cloud attaches to several (Volume.Shared): others can
//     attach it, now or by a request that is late, and no look proves that they have not. Backends offer no such use;
//   - so many operations a node and in all, with detachments in a lane of their own, since they are what attachments
//     wait for;
//   - the state of the world is what the cloud says now. Nothing is believed because it was asked for, and nothing is
//     remembered but that an attachment was begun so lately that the cloud may not show it yet.
//
// What the cloud does after it has said yes takes seconds to minutes. A caller whose time is over leaves with Busy and
// asks again; the next operation starts from what the cloud says then, so that it does not matter how the one before
// ended.
package attach
