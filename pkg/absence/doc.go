// Package absence is the form in which a driver says, with the refusal of a CreateVolume or CreateSnapshot and beside
// CSI, that there is nothing of the name, and that none comes of an earlier request.
//
// A code says no such thing: RESOURCE_EXHAUSTED means that this request has made nothing, while one before it, whose
// answer was lost, may have. Who asks for volumes by names that he uses once can then never let go of a name. package
// driver says it, csiclient hears it, and all others do not look at the details of a status.
package absence
