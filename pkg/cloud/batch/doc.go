// Package batch combines the requests of many callers into few requests to a cloud.
//
// The usual design waits a fixed time for others to join, which slows down every single request for the sake of busy
// times. A Batcher sends at once when no request is under way, and collects items only during one. A lone caller never
// waits. Under load the batches grow to the size that the cloud's own latency causes. A request that hangs does not
// delay the next one for long.
//
// A caller's answer always comes from a request that began after the call. Callers that ask for the same item at the
// same time share one place in the request. Each item has its own outcome: a request that fails as a whole because of
// an item is repeated in parts until the bad item stands alone.
package batch
