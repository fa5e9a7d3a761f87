// Package absence defines how a driver says, when it refuses a CreateVolume or CreateSnapshot, that nothing of the name
// exists and that no earlier request will create it. CSI has no such answer.
//
// A code is not sufficient: RESOURCE_EXHAUSTED means that this request has created nothing, but an earlier one, whose
// answer was lost, may have. Without this package, a caller that uses each name once could never abandon a name.
// Package driver sends the detail and csiclient reads it. Other clients do not look at the details of a status.
package absence
