// Command culprit misbehaves in the guest as its argument says, for the tests of package smoke.
package main
