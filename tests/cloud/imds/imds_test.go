package imds

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestRules makes requests that EC2's service refuses, and requests that it serves.
func TestRules(t *testing.T) {
	s := Serve(t, Document{InstanceID: "i-0123456789abcdef0"})
	const (
		document = "/latest/dynamic/instance-identity/document"
		ttl      = "X-Aws-Ec2-Metadata-Token-Ttl-Seconds"
	)
	ask := func(method, path string, headers ...string) (int, string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(headers); i += 2 {
			request.Header.Set(headers[i], headers[i+1])
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(text)
	}
	_, token := ask(http.MethodPut, "/latest/api/token", ttl, "60")
	with := func(token string) []string { return []string{"X-Aws-Ec2-Metadata-Token", token} }
	for _, row := range []struct {
		name, method, path string
		headers            []string
		want               int
	}{
		{"without a token", http.MethodGet, document, nil, http.StatusUnauthorized},
		{"with another token", http.MethodGet, document, with("token"), http.StatusUnauthorized},
		{"with the token", http.MethodGet, document, with(token), http.StatusOK},
		{"what is not there", http.MethodGet, "/latest/meta-data/iam/security-credentials/", with(token),
			http.StatusNotFound},
		{"a token without a time", http.MethodPut, "/latest/api/token", nil, http.StatusBadRequest},
		{"a token for too long", http.MethodPut, "/latest/api/token", []string{ttl, "21601"}, http.StatusBadRequest},
		{"a token through a proxy", http.MethodPut, "/latest/api/token", []string{ttl, "60", "X-Forwarded-For", "10.0.0.1"},
			http.StatusForbidden},
		{"a token elsewhere", http.MethodPut, document, []string{ttl, "60"}, http.StatusNotFound},
		{"another method", http.MethodPost, document, with(token), http.StatusMethodNotAllowed},
	} {
		code, text := ask(row.method, row.path, row.headers...)
		if code != row.want || code == http.StatusOK && !strings.Contains(text, `"instanceId":"i-0123456789abcdef0"`) {
			t.Errorf("%s: got %d, %q; want %d", row.name, code, text, row.want)
		}
	}
	s.Expire()
	if code, _ := ask(http.MethodGet, document, with(token)...); code != http.StatusUnauthorized {
		t.Errorf("with a token that holds no longer: got %d", code)
	}
}
