// Package hostile sends what an attacker or a confused orchestrator could send, in every text field of
// every call, and checks that each is answered with the right code and that nothing outside the
// driver's own directory is touched.
package hostile
