// Package faults is an HTTP proxy between an SDK and a cloud's API that simulates faults of networks and overloaded
// services. It throttles requests with the cloud's own error, fails them, loses them or their answers, delivers them
// twice or late, and truncates answers.
//
// A Rule scripts a fault for certain requests. Random gives each request a chance of a fault, from a seed, so that a
// run can be repeated. The Log records the fault of each request. Stuck states and stale reads are not faults of a
// network: the cloud's fake behind the proxy simulates them.
package faults
