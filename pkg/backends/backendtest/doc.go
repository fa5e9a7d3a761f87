// Package backendtest is the conformance suite of package backends. A backend that passes it is complete. Run checks
// every promise that the contract makes in the comments of its interfaces and under "What a backend promises". Each
// check is a subtest that is named after the promise, and checks the resulting state rather than the calls.
//
// A backend's test is short, because the suite finds out which features the backend has:
//
//	func TestConformance(t *testing.T) {
//		harness := backendtest.Over(mystorage.Definition(), func(_ testing.TB, o *backends.Options) {
//			o.Config.(*mystorage.Config).Pool = "tests"
//		})
//		harness.Nodes = []string{"node-a", "node-b"}
//		harness.Spec = func(name string) backends.Spec {
//			return backends.Spec{
//				Name:       name,
//				Capacity:   backends.CapacityRange{RequiredBytes: 16 << 20},
//				Parameters: &mystorage.Parameters{},
//				Access: backends.Access{
//					Types: []backends.AccessType{backends.Mount},
//					Modes: []backends.AccessMode{backends.SingleNodeWriter},
//				},
//			}
//		}
//		backendtest.Run(t, harness)
//	}
//
// Missing features are not checked. A promise that the suite cannot provoke by itself is checked if the Harness helps:
// see its optional fields.
//
// Every check gets its own empty backend from Harness.Open. Most of the checks of Create also apply to Clone, Restore,
// CreateSnapshot and CreateGroup, and are written once, for things.
package backendtest
