package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// seen is a cache that has been read, or not.
type seen struct {
	cache.Cache
	synced bool
}

func (s seen) WaitForCacheSync(context.Context) bool { return s.synced }

func TestHealth(t *testing.T) {
	for _, synced := range []bool{false, true} {
		handlers := (&health{cache: seen{synced: synced}}).handlers()
		for path, want := range map[string]bool{"/healthz": true, "/readyz": synced} {
			answer := httptest.NewRecorder()
			handlers[path].ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
			if got := answer.Code == http.StatusOK; got != want {
				t.Errorf("with a cache that is synced: %t, %s says %d", synced, path, answer.Code)
			}
		}
	}
}
