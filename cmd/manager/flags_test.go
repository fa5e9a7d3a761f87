package main

import (
	"io"
	"strings"
	"testing"
)

// TestFlagsThatCannotBe checks that each command refuses invalid flags before it sends a request to Kubernetes.
func TestFlagsThatCannotBe(t *testing.T) {
	for line, want := range map[string]string{
		"":                               "--namespace is missing",
		"--namespace=n --log-format=xml": `--log-format is "xml"`,
		"--namespace=n --workers=0":      "--workers is 0",
		"--namespace=n -v=-1":            "-v is -1",
		"--namespace=n --orphan-grace=-1s --orphan-period=1m":        "--orphan-grace is -1s",
		"--namespace=n --detach-dangling":                            "--detach-dangling needs --orphan-period",
		"--namespace=n --delete-leaked-after=24h":                    "--delete-leaked-after needs --orphan-period",
		"--namespace=n --orphan-period=1m --delete-leaked-after=59m": "--delete-leaked-after is 59m0s",

		"--namespace=n --orphan-period=1m --orphan-grace=2h --delete-leaked-after=1h": "or 2h0m0s at least",

		"--namespace=n --serve-holds=unix:///csi/holds.sock": "--serve-holds needs --failover",
		"--namespace=n --failover --serve-holds=holds.sock":  `--serve-holds: the endpoint "holds.sock"`,
		"--namespace=n --bind-api-qps=NaN":                   "--bind-api-qps is NaN",
		"--namespace=n --bind-api-qps=+Inf":                  "--bind-api-qps is +Inf",
		"--namespace=n --kube-api-burst=-3":                  "--kube-api-burst is -3",
		"master --namespace=n --kube-api-qps=NaN":            "--kube-api-qps is NaN",
		"master --namespace=n --kube-api-qps=-1":             "--kube-api-qps is -1",
		"master --namespace=n --kube-api-burst=-3":           "--kube-api-burst is -3",
		"master --namespace=n --kube-api-burst=0":            "--kube-api-burst is 0",
		"master":                                                      "--namespace is missing",
		"master --namespace=n --log-format=xml":                       `--log-format is "xml"`,
		"master --namespace=n --max-open-files=9":                     "--max-open-files is 9",
		"master --namespace=n --csi-endpoint=csi.sock":                `--csi-endpoint: the endpoint "csi.sock"`,
		"master --namespace=n --csi-endpoint=tcp://:9000":             `--csi-endpoint: the endpoint "tcp://:9000"`,
		"master --namespace=n --mount-directories=/a/../b":            `the directory "/a/../b"`,
		"master --namespace=n --node-selector=a==b==c":                `--node-selector is "a==b==c"`,
		"worker --namespace=n":                                        "--node-name is missing",
		"worker --namespace=n --node-name=a --log-format=xml":         `--log-format is "xml"`,
		"recycler --namespace=n --pod=p":                              "--drivers is missing",
		"recycler --namespace=n --pod=p --drivers=d --log-format=xml": `--log-format is "xml"`,
		"recycler --namespace=n --pod=p --drivers=d --kube-api-qps=0": "--kube-api-qps is 0",
		"recycler --namespace=n --pod=p --drivers=d,":                 "--drivers has an empty name",
	} {
		cmd := command()
		cmd.SetArgs(strings.Fields(line))
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("stowage-manager %s: got %v, want %q", line, err, want)
		}
	}
}
