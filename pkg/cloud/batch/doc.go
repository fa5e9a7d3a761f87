// Package batch turns the requests of many callers into few requests to a cloud.
//
// Waiting a fixed time for others to join, as is usual, makes every single request slow for the sake of busy times. A
// Batcher sends at once when nothing is under way, and gathers only while a request is: so a lone caller never waits,
// and under load the batches grow by themselves to what the cloud's own latency makes of them. A request that hangs
// does not hold the next one back for long.
//
// A caller's answer always comes from a request that began after the caller asked. Callers who ask for the same item at
// the same time share one place in it. Each item has an outcome of its own: when a request fails as a whole because of
// something in it, it is repeated in parts until what is bad stands alone.
package batch
