package backendtest

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/memory"
)

const (
	foundAgainName   = "what is made is found again in every field"
	nameTakenName    = "a name that is taken is Exists and nothing changes"
	oneWinsName      = "of sixteen concurrent calls for one name one wins"
	strangeNamesName = "any text is a name"
	neverThereName   = "what was never there is NotFound"
	endedName        = "a request that has ended changes nothing"
	endingName       = "a request that ends on the way leaves all or nothing"
)

// TestTheSuiteFindsWrongBackends breaks one promise at a time. The check of that promise must fail, and must succeed
// over a right backend.
func TestTheSuiteFindsWrongBackends(t *testing.T) {
	zero := 0
	for _, row := range []struct {
		group, check string
		wrong        func(p parts) any
	}{
		{"Create", nameTakenName, func(p parts) any { return idempotentItself{p} }},
		{"Create", nameTakenName, func(p parts) any { return checksTheSpecFirst{p} }},
		{"Create", nameTakenName, func(p parts) any { return showsFingerprints{p} }},
		{"Create", oneWinsName, func(p parts) any {
			return looksBeforeItCreates{p, new(atomic.Int32), make(chan struct{}), new(sync.Map)}
		}},
		{"Create", foundAgainName, func(p parts) any { return forgetsFingerprint{p} }},
		{"Create", endedName, func(p parts) any { return leaksWhatWasCancelled{p} }},
		{"Create", endingName, func(p parts) any { return leavesHalfAVolume{p} }},
		{"Create", strangeNamesName, func(p parts) any { return sanitisesNames{p} }},
		{"Create", neverThereName, func(p parts) any { return plainErrors{p} }},
		{"Create", neverThereName, func(p parts) any { return returnsNothing{p} }},
		{"Create", neverThereName, func(p parts) any { return cleansHandles{p} }},
		{"Create", neverThereName, func(p parts) any { return deletesWhatIsNotThere{p} }},
		{"Create", "what is deleted is gone and its name is free", func(p parts) any { return deletesWhatIsNotThere{p} }},
		{"Create", "a capacity range is met or OutOfRange", func(p parts) any { return ignoresTheLimit{p} }},
		{"Create", "a device is large enough for its filesystem", func(p parts) any { return devicesOfAnySize{p} }},
		{"Create", "a volume that cannot be used as asked is Invalid", func(p parts) any { return ignoresAccess{p} }},
		{"Create", "a volume is what its spec asks for", func(p parts) any { return showsSecrets{p} }},
		{"Create", "what is returned belongs to the caller", func(p parts) any { return sharesItsState{p, new(sync.Map)} }},
		{"Handles", "a handle that was never given out is NotFound everywhere",
			func(p parts) any { return cleansHandles{p} }},
		{"Delete", "a new volume has nothing of a deleted one", func(p parts) any { return keepsOldData{p, new(sync.Map)} }},
		{"Features", "whatever is offered works", func(p parts) any { return offersTooMuch{p} }},
		{"Features", "those that build on each other come together", func(p parts) any {
			return listsWithoutSnapshots{p.Backend, p.SnapshotLister}
		}},
		{"Node", "Source describes the same thing each time", func(p parts) any { return sourceDiffersEachTime{p} }},
		{"Node", "Source describes the same thing each time", func(p parts) any { return sourceWithoutProof{p} }},
		{"Node", "Source describes another thing for another volume",
			func(p parts) any { return oneSourceForAll{p, new(sync.Map)} }},
		{"Node", "Source changes nothing", func(p parts) any { return sourceWrites{p} }},
		{"Node", "a volume in use is not deleted", func(p parts) any { return deletesWhatIsInUse{p} }},
		{"Node", "a volume in use is not deleted",
			func(p parts) any { return knowsOfNoUse{p.Backend, bare{p.Backend, p.NodeBackend, p.Releaser}} }},
		{"Node", "Release can be called again, without Source and for what is gone",
			func(p parts) any { return releasesOnce{p} }},
		{"Attach", "attached elsewhere is InUse and names the node", func(p parts) any { return attachesTwice{p} }},
		{"Attach", "of concurrent attachments to two nodes one wins", func(p parts) any { return attachesTwice{p} }},
		{"Attach", "an unknown node is NotFound", func(p parts) any { return attachesAnyway{p} }},
		{"Attach", "a use that the volume does not offer is Invalid", func(p parts) any { return attachesAnyway{p} }},
		{"Attach", "an unknown node is NotFound", func(p parts) any { return unknownErrors{p} }},
		{"Attach", "a node's limit is Exhausted", func(p parts) any { return attachesAnyway{p} }},
		{"Attach", "attaching and detaching is seen in PublishedNodes", func(p parts) any { return detachesAll{p} }},
		{"Attach", "an attached volume is not deleted", func(p parts) any { return deletesWhatIsInUse{p} }},
		{"Expand", "a volume grows and keeps its data", func(p parts) any { return growsInWordsOnly{p} }},
		{"Expand", "a volume that is large enough is left as it is", func(p parts) any { return growsInWordsOnly{p} }},
		{"Expand", "a range that cannot be met is OutOfRange and nothing changes",
			func(p parts) any { return ignoresTheLimit{p} }},
		{"Modify", "what a value leaves out stays", func(p parts) any {
			return resetsWhatIsLeftOut{p, &memory.Mutable{ReadAheadKiB: &zero}}
		}},
		{"Prove", thereIsNotAbsentName, func(p parts) any { return provesEverything{p} }},
		{"Prove", makingIsNotName, func(p parts) any { return provesEverything{p} }},
		{"Prove", elsewhereIsNotName, func(p parts) any { return provesEverything{p} }},
		{"Prove", refusedIsAbsentName, func(p parts) any { return provesNothing{p} }},
		{"Prove", snapshotIsNotName, func(p parts) any { return provesEverything{p} }},
		{"Prove", noSnapshotName, func(p parts) any { return provesNothing{p} }},
		{"Prove", groupIsNotName, func(p parts) any { return provesEverything{p} }},
		{"Prove", noGroupName, func(p parts) any { return provesNothing{p} }},
		{"Clone", nameTakenName, func(p parts) any { return looksForTheSourceFirst{p} }},
		{"Clone", "a clone has the data of its source and is independent",
			func(p parts) any { return clonesTheLatestData{p, new(sync.Map)} }},
		{"Clone", "a clone of a volume in use has the data of one instant",
			func(p parts) any { return copiesWhileWritten{p, new(sync.Map)} }},
		{"List", "a page goes on when the entry before it is gone", func(p parts) any { return listsByPosition{p} }},
		{"List", "what is there all the time is returned once", func(p parts) any { return listsByPosition{p} }},
		{"List", "pages of any size add up to everything, once and in one order",
			func(p parts) any { return listsWithoutOrder{p} }},
		{"List", "a foreign token is Busy", func(p parts) any { return startsOver{p} }},
		{"ListSnapshots", "with a volume's handle only its snapshots are listed",
			func(p parts) any { return listsAllSnapshots{p} }},
		{"Capacity", "a new volume takes its capacity and gives it back", func(p parts) any { return hasAlwaysAsMuch{p} }},
		{"Capacity", "a place that cannot be served has none", func(p parts) any { return hasAlwaysAsMuch{p} }},
		{"Health", "what is wrong is reported for the volume that is unwell", func(p parts) any { return isAlwaysWell{p} }},
		{"Topology", "a place that cannot be met is Exhausted", func(p parts) any { return ignoresTopology{p} }},
		{"Topology", "this node has one segment for each key", func(p parts) any { return locatesInPart{p} }},
		{"Snapshot", "a snapshot outlives its volume and its restored volumes outlive it",
			func(p parts) any { return restoresNothing{p} }},
		{"Snapshot", "a snapshot of a volume in use has the data of one instant",
			func(p parts) any { return copiesWhileWritten{p, new(sync.Map)} }},
		{"Snapshot", noRoomName, func(p parts) any { return leavesSnapshotsOpen{p} }},
		{"Restore", "a restored volume meets its spec and names its source", func(p parts) any { return restoresNothing{p} }},
		{"Group", "a group is what its spec asks for", func(p parts) any { return forgetsGroupsFingerprint{p} }},
		{"Group", "all snapshots exist afterwards or none", func(p parts) any { return groupsOneByOne{p} }},
		{"Group", "all snapshots are of one instant", func(p parts) any { return copiesWhileWritten{p, new(sync.Map)} }},
		{"Group", "a member goes with its group only", func(p parts) any { return deletesMembers{p} }},
	} {
		t.Run(row.group+", "+row.check, func(t *testing.T) {
			if failures := failuresOf(t, right(), row.group, row.check); len(failures) != 0 {
				t.Fatalf("the check complains of a right backend: %q", failures)
			}
			failures := failuresOf(t, broken(row.wrong), row.group, row.check)
			if len(failures) == 0 {
				t.Fatal("the check does not see the broken promise")
			}
			t.Logf("%d complaints, first: %s", len(failures), failures[0])
		})
	}
}

// broken returns the harness of a wrong backend.
func broken(wrong func(p parts) any) Harness {
	h := right()
	inside := h.Open
	h.Open = func(tb testing.TB) *backends.Instance {
		tb.Helper()
		p := partsOf(inside(tb))
		b := wrong(p)
		node, ok := b.(backends.NodeBackend)
		if !ok {
			node = p
		}
		return &backends.Instance{Controller: b.(backends.Backend), Node: node}
	}
	return h
}

func TestTheSuiteFindsStateThatIsLost(t *testing.T) {
	h := right()
	h.Reopen = func(tb testing.TB, _ *backends.Instance) *backends.Instance { return h.Open(tb) }
	for _, c := range reopenChecks() {
		if failuresOf(t, h, "Reopen", c.name) == nil {
			t.Errorf("%q does not see that everything is lost", c.name)
		}
	}
}

func TestTheSuiteFindsWhatIsForgottenWithItsStorage(t *testing.T) {
	for name, after := range map[string]func(tb testing.TB, before *backends.Instance) *backends.Instance{
		"everything is gone": func(tb testing.TB, _ *backends.Instance) *backends.Instance {
			return right().Open(tb)
		},
		"everything is used as before": func(_ testing.TB, before *backends.Instance) *backends.Instance { return before },
	} {
		h := right()
		h.Lose = map[string]Loss{name: func(testing.TB, *backends.Options) func() { return func() {} }}
		h.reopenWith = func(tb testing.TB, before *backends.Instance, change func(*backends.Options)) *backends.Instance {
			change(&backends.Options{})
			return after(tb, before)
		}
		if failuresOf(t, h, "Away", name) == nil {
			t.Errorf("%s: nothing is complained of", name)
		}
	}
}

func TestTheSuiteFindsGroupsOfWhatIsApart(t *testing.T) {
	h := right()
	h.Apart = func(tb testing.TB) (*backends.Instance, []string) {
		instance := h.Open(tb)
		v, err := instance.Controller.Create(tb.Context(), h.Spec("together"))
		if err != nil {
			tb.Fatal(err)
		}
		return instance, []string{v.Handle}
	}
	if failuresOf(t, h, "Group", apartName) == nil {
		t.Error("a group of what is said to be apart is not complained of")
	}
}

func TestTheSuiteFindsTheWrongKind(t *testing.T) {
	h := right()
	h.Broken = map[backends.Kind]func(testing.TB, *backends.Instance) error{
		backends.Exhausted: func(tb testing.TB, instance *backends.Instance) error {
			return second(instance.Controller.Get(tb.Context(), "missing"))
		},
	}
	if failuresOf(t, h, "Kinds", "exhausted") == nil {
		t.Error("a failure of another Kind than the provoked one is accepted")
	}
}

// TestTheSuiteWatchesWhatIsAround tests the checks that Over makes after the test has ended.
func TestTheSuiteWatchesWhatIsAround(t *testing.T) {
	for name, wrong := range map[string]func(p parts, o backends.Options) backends.Backend{
		"fingerprints in the log": func(p parts, o backends.Options) backends.Backend {
			return logsEverything{p, func(text string) { o.Log.Debug(text) }}
		},
		"files outside": func(p parts, o backends.Options) backends.Backend { return usesNamesAsPaths{p, o.DataDir} },
	} {
		definition := memory.Definition()
		inside := definition.Open
		definition.Open = func(ctx context.Context, o backends.Options) (*backends.Instance, error) {
			i, err := inside(ctx, o)
			if err != nil {
				return nil, err
			}
			return &backends.Instance{Controller: wrong(partsOf(i), o), Node: i.Node, Close: i.Close}, nil
		}
		h := Over(definition, nil)
		h.Nodes, h.Spec = []string{"node-a", "node-a"}, right().Spec
		if failuresOf(t, h, "Create", strangeNamesName) == nil {
			t.Errorf("%s: nothing is complained of", name)
		}
	}
}

// TestOverReopens shows that Reopen closes the instance and opens the same state.
func TestOverReopens(t *testing.T) {
	var opened []string
	closed := 0
	definition := backends.Definition{Name: "counting",
		Open: func(_ context.Context, o backends.Options) (*backends.Instance, error) {
			opened = append(opened, o.DataDir)
			o.Log.Log(t.Context(), slog.LevelDebug, "opened")
			return &backends.Instance{Close: func(context.Context) error { closed++; return nil }}, nil
		}}
	t.Run("inside", func(t *testing.T) {
		h := Over(definition, func(_ testing.TB, o *backends.Options) { o.NodeID = "other" })
		again := h.Reopen(t, h.Open(t))
		if again == nil || len(opened) != 2 || opened[0] != opened[1] || closed != 1 {
			t.Errorf("opened %q and closed %d times, want one directory twice and one close", opened, closed)
		}
	})
	if closed != 2 {
		t.Errorf("closed %d times at the end, want 2", closed)
	}
}
