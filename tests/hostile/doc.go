// Package hostile sends values that an attacker or a confused orchestrator could send, in every text field of every
// call. It checks that each is answered with the right code, and that nothing outside the driver's own directory
// changes.
package hostile
