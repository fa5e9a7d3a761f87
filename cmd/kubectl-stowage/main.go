package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/doctor"
)

// version is set by the linker (-X main.version=…).
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // A second signal ends the process at once.
	err := command().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "kubectl-stowage:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	cmd := &cobra.Command{Use: "kubectl-stowage", Short: "Help with the volumes of a cluster", Version: version,
		SilenceUsage: true, SilenceErrors: true}
	cmd.AddCommand(doctorCommand(), bundleCommand())
	return cmd
}

// options are the flags, which have kubectl's names.
type options struct {
	kubeconfig, context, namespace, output string
}

func doctorCommand() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "doctor [claim|pod|node NAME]",
		Short: "Say why a claim, a pod or a node is stuck",
		Long: `Say where a volume is, who holds it, which step waits on which component, and what to do. Without an argument all
claims, volumes, nodes and pods are examined, and those that are fine are left out. Nothing is changed.`,
		Example: "  kubectl stowage doctor pod web-0 --namespace=shop\n  kubectl stowage doctor --output=json",
		Args:    cobra.MatchAll(cobra.MaximumNArgs(2), words),
		RunE:    func(cmd *cobra.Command, args []string) error { return o.doctor(cmd.Context(), cmd.OutOrStdout(), args) },
	}
	o.bind(cmd)
	flags := cmd.Flags()
	flags.StringVarP(&o.namespace, "namespace", "n", "", "the namespace of the claim or pod")
	flags.StringVarP(&o.output, "output", "o", "text", "text or json")
	return cmd
}

// bind adds the flags that select the cluster.
func (o *options) bind(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "a kubeconfig file (default: as kubectl's)")
	flags.StringVar(&o.context, "context", "", "the kubeconfig's context")
}

// words checks the arguments.
func words(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if _, known := examine(args[0]); !known || len(args) != 2 {
		return fmt.Errorf("the arguments are %q: use claim, pod or node and a name, or none for all", strings.Join(args, " "))
	}
	return nil
}

// examine returns the function that examines a kind of object.
func examine(kind string) (func(c *doctor.Cluster, namespace, name string) []doctor.Finding, bool) {
	switch kind {
	case "claim", "pvc", "persistentvolumeclaim":
		return (*doctor.Cluster).Claim, true
	case "pod":
		return (*doctor.Cluster).Pod, true
	case "node":
		return func(c *doctor.Cluster, _, name string) []doctor.Finding { return c.Node(name) }, true
	}
	return nil, false
}

func (o *options) doctor(ctx context.Context, out io.Writer, args []string) error {
	if o.output != "text" && o.output != "json" {
		return fmt.Errorf("--output is %q: use text or json", o.output)
	}
	api, namespace, err := o.connect()
	if err != nil {
		return err
	}
	cluster, err := doctor.Read(ctx, api)
	if err != nil {
		return err
	}
	var findings []doctor.Finding
	if len(args) == 0 {
		findings = cluster.All()
	} else {
		look, _ := examine(args[0])
		findings = look(cluster, namespace, args[1])
	}
	return o.print(out, findings)
}

func (o *options) print(out io.Writer, findings []doctor.Finding) error {
	if o.output == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(append([]doctor.Finding{}, doctor.Sort(findings)...))
	}
	if len(findings) == 0 {
		_, err := fmt.Fprintln(out, "Everything that uses volumes is fine.")
		return err
	}
	return doctor.Write(out, findings)
}

// connect returns a client of the cluster that kubectl would use, and the namespace.
func (o *options) connect() (client.Reader, string, error) {
	rest, namespace, err := o.cluster()
	if err != nil {
		return nil, "", err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, "", err
		}
	}
	api, err := client.New(rest, client.Options{Scheme: scheme})
	return api, namespace, err
}

// cluster returns the configuration of the cluster that kubectl would use, and the namespace.
func (o *options) cluster() (*rest.Config, string, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	config := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{
		CurrentContext: o.context, Context: clientcmdapi.Context{Namespace: o.namespace},
	})
	namespace, _, err := config.Namespace()
	if err != nil {
		return nil, "", fmt.Errorf("read the kubeconfig: %w", err)
	}
	found, err := config.ClientConfig()
	if err != nil {
		return nil, "", fmt.Errorf("read the kubeconfig: %w", err)
	}
	return found, namespace, nil
}
