// Package openfiles bounds how many files a process may have open.
//
// Kubernetes has no field for this, and runtimes often leave the bound at a million. Then a program that leaks
// descriptors takes the kernel's memory before it fails, and programs that close all descriptors below the bound at
// their start take seconds.
package openfiles
