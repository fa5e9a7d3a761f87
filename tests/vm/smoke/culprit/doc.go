// Command culprit does in the guest what its argument says: it is what goes wrong in the tests of package smoke.
package main
