package driver

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

func wantBody(t *testing.T, url string, parts ...string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range parts {
		if !strings.Contains(string(body), part) {
			t.Errorf("%s lacks %q:\n%s", url, part, body)
		}
	}
}
