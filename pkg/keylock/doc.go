// Package keylock admits one operation at a time to a thing that a key identifies.
//
// A CSI driver must expect calls for one volume to overlap, and should answer Aborted to the later one (CSI
// specification, "Concurrency"). With a mutex per volume, that call would wait for a lock whose holder may hang on dead
// storage. A map that only grows would keep a lock for each volume that ever existed. Locks does neither: it reports at
// once whether the keys are free, and forgets them on unlock.
package keylock
