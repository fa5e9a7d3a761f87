// Package cloud holds no code: the packages below it are the machinery that backends for cloud disks share.
//
// The API of a cloud is slow and throttled. Some of its answers are late or never come, and the cloud goes on working
// after an answer. Earlier drivers fail in the same ways: they poll each volume with a call of its own until the
// account is throttled; one bad ID fails a whole batch; a disk is created twice, or deleted although its creator was
// told to use it; an attachment is believed because it was requested. The packages prevent this:
//
//   - batch puts the items of many callers into one request, with an outcome for each item;
//   - wait polls in one request for all callers that wait for a state, at a rate that fits the cloud's own pace;
//   - flight runs one operation per object, and reserves the object until the cloud has answered, even if the caller
//     has left;
//   - attach attaches and detaches volumes, and decides only by what the cloud reports;
//   - known keeps facts that the cloud has confirmed, such as a deletion, and protects them from older reads;
//   - names chooses device names for clouds that need them;
//   - metadata finds out which machine this is;
//   - limits counts how many more disks a node can take;
//   - token makes idempotency tokens, and a new one for a second attempt.
//
// The packages know the contract's Kinds of error, and nothing of any cloud, CSI or Kubernetes. All of them report an
// unknown outcome as Busy or Unavailable, and none deletes anything because of one.
package cloud
