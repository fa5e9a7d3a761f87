// Package backendtest is the conformance suite of package backends: it is the definition of a finished
// backend. Run checks every promise that the contract makes in the comments of its interfaces and under
// "What a backend promises", each as a subtest that is named after it, and looks at the state of the
// world rather than at which calls were made.
//
// A backend's test is short, because the suite finds out for itself what the backend offers:
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
// What is not offered is not checked. A promise that the suite cannot provoke by itself is checked when
// the Harness helps: see its optional fields.
//
// Every check gets a backend of its own from Harness.Open, with nothing in it. Most of the checks of
// Create hold for Clone, Restore, CreateSnapshot and CreateGroup too, and are written once, over things.
package backendtest
