// Package inside supports tests that must run only in the guest, because they start and stop the kernel's NFS server or
// change the firewall. Outside the guest they fail with a message that says what to run.
package inside
