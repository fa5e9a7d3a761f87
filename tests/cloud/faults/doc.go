// Package faults is an HTTP proxy that stands between an SDK and a cloud's API and does to requests what networks and
// overloaded services do: it throttles them with the cloud's own error, fails them, loses them or their answers,
// delivers them twice or late, and cuts answers off.
//
// A Rule scripts a fault for certain requests; Random gives each request its chance of one, from a seed, so that a run
// can be repeated. What was done to which request is in the Log. States that get stuck, and things that are shown late,
// are not a network's doing: they are for the fake of the cloud behind it.
package faults
