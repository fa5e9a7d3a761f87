package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// TestWritesAreStrict checks that the API server is told to refuse an object with a field that it does not know:
// without the source of a volume, it would create an empty one.
func TestWritesAreStrict(t *testing.T) {
	asked := map[string]string{}
	known := metav1.GroupVersionForDiscovery{GroupVersion: "stowage.dev/v1alpha1", Version: "v1alpha1"}
	kinds := map[string]any{ // The client asks for the resource of a kind.
		"/api": metav1.APIVersions{},
		"/apis": metav1.APIGroupList{Groups: []metav1.APIGroup{{Name: v1alpha1.Group, PreferredVersion: known,
			Versions: []metav1.GroupVersionForDiscovery{known}}}},
		"/apis/stowage.dev/v1alpha1": metav1.APIResourceList{GroupVersion: known.GroupVersion,
			APIResources: []metav1.APIResource{{Name: "localvolumes", Namespaced: true, Kind: "LocalVolume"}}},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method != http.MethodGet {
			asked[r.Method] = r.URL.Query().Get("fieldValidation")
			w.WriteHeader(http.StatusConflict)
			return
		}
		if err := json.NewEncoder(w).Encode(kinds[r.URL.Path]); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	p := process{kubeconfig: kubeconfig(t, server), httpEndpoint: "0", logFormat: "text"}
	err := p.start(t.Context(), slog.New(slog.DiscardHandler), ctrl.Options{}, func(m ctrl.Manager) error {
		o := &v1alpha1.LocalVolume{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "lv"}}
		_ = m.GetClient().Create(t.Context(), o) // The server refuses all requests.
		_ = m.GetClient().Update(t.Context(), o)
		_ = m.GetClient().Status().Update(t.Context(), o)
		return os.ErrClosed
	})
	if !errors.Is(err, os.ErrClosed) || asked[http.MethodPost] != "Strict" || asked[http.MethodPut] != "Strict" {
		t.Errorf("writes ask for the validation %q: %v", asked, err)
	}
}

// TestStopBeforeAnAnswer checks that a manager whose API server does not answer ends when it is stopped.
func TestStopBeforeAnAnswer(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	silent := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		stop()
		<-silent
	}))
	defer server.Close()
	defer close(silent)
	p := process{kubeconfig: kubeconfig(t, server), httpEndpoint: "0", logFormat: "text"}
	only := map[client.Object]cache.ByObject{&v1alpha1.NodeStorage{}: {}} // Its resource is asked for at once.
	ended := make(chan error, 1)
	go func() {
		ended <- p.start(ctx, slog.New(slog.DiscardHandler), ctrl.Options{Cache: cache.Options{ByObject: only}}, nil)
	}()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the manager ended with %v, want its stop", err)
		}
	case <-time.After(2 * time.Minute):
		t.Error("the manager waits for the API server although it was stopped")
	}
}

// kubeconfig is a file that names an API server.
func kubeconfig(t *testing.T, server *httptest.Server) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["test"] = &clientcmdapi.Cluster{Server: server.URL}
	config.Contexts["test"] = &clientcmdapi.Context{Cluster: "test"}
	config.CurrentContext = "test"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}
