// Package inside is for tests that must run in the guest and nowhere else: they start and stop the kernel's NFS server
// or change the firewall. Outside they fail, and say what to run.
package inside
