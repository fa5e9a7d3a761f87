// Package setup decides in one place whether a volume still has to be set up.
//
// Container orchestrators repeat their calls until they succeed, so every setup is requested again and again. Ways to
// tell that it is done differ: there is nothing to check, a mount exists, or a marker file exists. Each is a Strategy;
// the setup itself needs no such checks. Run and RunOwned keep two promises that are easily broken. A mark is written
// only after success. File ownership is applied once each time that the setup did work, and again if an earlier run was
// cut short.
//
// The design follows the Kubernetes proposal "Volume plugins and idempotency".
package setup
