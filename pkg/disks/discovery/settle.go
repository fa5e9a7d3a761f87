package discovery

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/stowage-csi/stowage/pkg/disks/report"
)

// NoIdentity is the identity of a volume that has none, or does not report it.
const NoIdentity = "none"

// settle sorts a list, and marks volumes as unusable that cannot be told apart. Volumes without a name, because they
// have no identity, get one from their device.
func settle(list []report.Volume) []report.Volume {
	slices.SortFunc(list, func(a, b report.Volume) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Device, b.Device))
	})
	number := map[string]int{}
	for _, v := range list {
		number[v.Name]++
	}
	for i := range list {
		v := &list[i]
		if v.Name != "" && number[v.Name] == 1 {
			continue
		}
		if v.Name != "" {
			v.Message = fmt.Sprintf("%d disks report %s: they cannot be told from each other", number[v.Name], v.Identity)
		}
		v.State, v.Name = report.Unusable, NameOf("device="+v.Device+v.Path)
		v.Identity = cmp.Or(v.Identity, NoIdentity)
	}
	return list
}
