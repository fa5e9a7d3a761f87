// Package keylock admits one operation at a time to a thing that is known by a key.
//
// A CSI driver must expect calls for one volume to overlap and should answer Aborted to the later one
// (CSI specification, "Concurrency"). A mutex per volume would make that call wait for a lock whose
// holder may hang on dead storage; a map that only ever grows would keep a lock for each volume that ever
// was. Locks does neither: it says at once whether the keys are free, and forgets them on unlock.
package keylock
