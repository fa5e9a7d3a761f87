// Package cloud is the machinery that backends for cloud disks share; the packages below it do the work.
//
// A cloud's API is slow, throttled, answers late and sometimes not at all, and works on after it has answered. The
// drivers that came before agree on what goes wrong then: each volume polled by a call of its own until the account is
// throttled, one bad ID that fails a whole batch, a disk made twice or deleted although its maker was told to use it,
// an attachment believed because it was asked for. Each of these has one answer here:
//
//   - batch puts what many callers ask for into one request, with an outcome for each of them;
//   - wait looks on behalf of all who wait for a state, in one request, as often as the cloud's own pace makes useful;
//   - flight keeps one operation a thing, and keeps the thing reserved until what was sent has been answered, also
//     when whoever asked for it has left;
//   - attach is the way from detached to attached and back, decided by what the cloud says and nothing else;
//   - known keeps what the cloud has said for certain, such as that a volume is gone, against reads that are older;
//   - names chooses device names where a cloud wants them;
//   - metadata finds out which machine this is;
//   - limits counts how many disks a node can still take;
//   - token makes idempotency tokens that a second try can have anew.
//
// They know the contract's Kinds of error and nothing of any cloud, CSI or Kubernetes. An outcome that is not known is
// Busy or Unavailable in all of them, and nothing is ever deleted because of one.
package cloud
