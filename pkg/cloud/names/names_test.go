package names

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stowage-csi/stowage/pkg/failure"
)

func TestWhatTheCloudHasIsNotChosen(t *testing.T) {
	a := New([]string{"a", "b", "c", "d"})
	name, release, err := a.Reserve("node", []string{"a", "/dev/sda1"}, []string{"b"})
	if name != "c" || err != nil {
		t.Fatalf("got %q, %v; want c", name, err)
	}
	if other, _, _ := a.Reserve("other node", nil, nil); other != "a" {
		t.Errorf("on another node the name is %q, want a", other)
	}
	if next, _, err := a.Reserve("node", []string{"a"}, []string{"b"}); next != "d" || err != nil {
		t.Errorf("while c is reserved: got %q, %v; want d", next, err)
	}
	if _, _, err := a.Reserve("node", []string{"a"}, []string{"b"}); !failure.Is(err, failure.Exhausted) {
		t.Errorf("with no name left: %v, want Exhausted", err)
	}
	release()
	release()
	if next, _, err := a.Reserve("node", []string{"a"}, []string{"b"}); next != "c" || err != nil {
		t.Errorf("after c was released: got %q, %v; want c", next, err)
	}
}

func TestFreedNamesComeLast(t *testing.T) {
	a := New([]string{"a", "b", "c"})
	var order []string
	for range 5 {
		name, release, err := a.Reserve("node", nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		order = append(order, name)
		release()
	}
	if want := []string{"a", "b", "c", "a", "b"}; !slices.Equal(order, want) {
		t.Errorf("the names were %q, want %q", order, want)
	}
}

func TestNodesAreForgottenInTime(t *testing.T) {
	a := New([]string{"a", "b"})
	kept, _, err := a.Reserve("in use", nil, nil)
	for i := range 2 * keep {
		_, release, _ := a.Reserve(fmt.Sprint("node ", i), nil, nil)
		release()
	}
	if len(a.nodes) > keep {
		t.Errorf("%d nodes are remembered, want %d", len(a.nodes), keep)
	}
	if other, _, _ := a.Reserve("in use", nil, nil); err != nil || other == kept {
		t.Errorf("the name %q is given out twice", other)
	}
}

// TestNoNameTwice attaches and detaches at random. The cloud learns of an attachment only when its name is released.
func TestNoNameTwice(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 3))
		var candidates, inCloud []string
		for i := range 8 {
			candidates = append(candidates, fmt.Sprint("xvd", i))
		}
		a := New(candidates)
		pending := map[string]func(){}
		for range 300 {
			switch random.IntN(3) {
			case 0:
				name, release, err := a.Reserve("node", inCloud, nil)
				if full := len(inCloud)+len(pending) == len(candidates); full != (err != nil) {
					t.Fatalf("seed %d: with %d and %d names of %d in use: %v", seed, len(inCloud), len(pending), len(candidates), err)
				}
				if err != nil {
					continue
				}
				if pending[name] != nil || slices.Contains(inCloud, name) {
					t.Fatalf("seed %d: %q is given out twice", seed, name)
				}
				pending[name] = release
			case 1:
				for name, release := range pending {
					inCloud = append(inCloud, name)
					release()
					delete(pending, name)
					break
				}
			case 2:
				if len(inCloud) > 0 {
					inCloud = slices.Delete(inCloud, 0, 1)
				}
			}
		}
	}
}
