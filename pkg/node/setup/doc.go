// Package setup keeps in one place the question whether a volume still has to be set up.
//
// Container orchestrators repeat their calls until they succeed, so every setup is asked for again and
// again. How one tells that it has been done differs: there is nothing to tell, a mount is there, or a
// marker file is. Each is a Strategy; the setup itself stays free of such checks. Around it, Run and
// RunOwned keep the two promises that are easily broken: a mark is written only after success, and the
// ownership of files is applied once each time that setup did work, and again when an earlier run of it
// was cut short.
//
// The form is that of the Kubernetes proposal "Volume plugins and idempotency".
package setup
