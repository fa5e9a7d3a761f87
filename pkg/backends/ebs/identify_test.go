package ebs_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/ebs"
	fake "github.com/stowage-csi/stowage/tests/cloud/ec2"
	"github.com/stowage-csi/stowage/tests/cloud/imds"
	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// machine is an instance with its metadata service and its region's EC2, both over real sockets, and the environment of
// a process on it.
type machine struct {
	imds *imds.Service
	ec2  *fake.Server
	node *backends.NodeSource
	id   string // as given
	edit func(*ebs.Config)
	near time.Duration // timeout of the metadata service; 0 for as long as a busy machine needs
	log  bytes.Buffer
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{ec2: fake.New(region.Quick())}
	m.ec2.AddInstance(fake.Instance{ID: region.NodeA, Type: "m5.tiny", Zone: "region-1a", Interfaces: 2})
	m.ec2.AddInstance(fake.Instance{ID: region.NodeC, Type: "m5.tiny", Zone: "region-1b", Interfaces: 2})
	api := httptest.NewServer(m.ec2)
	t.Cleanup(api.Close)
	m.imds = imds.Serve(t, imds.Document{InstanceID: region.NodeA, InstanceType: "m5.tiny", AvailabilityZone: "region-1a",
		Region: "region-1"})
	m.node = object(backends.NodeInfo{ProviderID: "aws:///region-1a/" + region.NodeA, Type: "m5.tiny", Region: "region-1"},
		nil)
	for name, value := range map[string]string{
		"AWS_EC2_METADATA_SERVICE_ENDPOINT": m.imds.URL, "AWS_EC2_METADATA_DISABLED": "", "AWS_ENDPOINT_URL": api.URL,
		"AWS_REGION":         "",
		"AWS_DEFAULT_REGION": "", "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": region.SecretKey,
		"AWS_PROFILE":     "",
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull,
	} {
		t.Setenv(name, value)
	}
	return m
}

// object is a Node object.
func object(info backends.NodeInfo, err error) *backends.NodeSource {
	return &backends.NodeSource{Name: `the Node object "n"`,
		Get: func(context.Context) (backends.NodeInfo, error) { return info, err }}
}

// silence makes the metadata service give no answer, and the process not wait for one.
func (m *machine) silence(mood imds.Mood) {
	m.imds.Be(mood)
	m.near = 10 * time.Millisecond
}

func (m *machine) open(t *testing.T) (*backends.Instance, error) {
	t.Helper()
	d := ebs.Definition()
	config, _ := d.NewConfig().(*ebs.Config)
	config.SysBlock = t.TempDir()
	config.Timing.Near = cmp.Or(m.near, 2*time.Minute)
	if m.edit != nil {
		m.edit(config)
	}
	return d.Open(t.Context(), backends.Options{
		Driver: "ebs.csi.stowage.dev", NodeID: m.id, NodeOnly: true, Node: m.node, Config: config,
		Log: slog.New(slog.NewTextHandler(&m.log, nil)),
	})
}

// TestInstanceIsFound takes the instance's ID and zone from each source that knows them.
func TestInstanceIsFound(t *testing.T) {
	missing := object(backends.NodeInfo{}, errors.New("does not exist"))
	for _, row := range []struct {
		name  string
		edit  func(m *machine)
		id    string
		zone  string
		asked int // requests to EC2 for the zone
		warns string
	}{
		{"by the metadata service", func(m *machine) { m.node = missing }, region.NodeA, "region-1a", 0, ""},
		{"by the Node object", func(m *machine) { m.silence(imds.Far) }, region.NodeA, "region-1a", 0, ""},
		{"by the Node object, behind dropped requests", func(m *machine) { m.silence(imds.Dropping) }, region.NodeA,
			"region-1a", 0, ""},
		{"by the Node object, whose zone is a label", func(m *machine) {
			m.imds.Be(imds.Disabled)
			m.node = object(backends.NodeInfo{ProviderID: "aws:////" + region.NodeC, Zone: "region-1b", Region: "region-1"}, nil)
		}, region.NodeC, "region-1b", 0, ""},
		{"by the Node object without a zone", func(m *machine) {
			m.imds.Be(imds.Failing)
			m.node = object(backends.NodeInfo{ProviderID: "aws:////" + region.NodeC, Region: "region-1"}, nil)
		}, region.NodeC, "region-1b", 1, ""},
		{"by the flag, and the metadata service agrees", func(m *machine) { m.id, m.node = region.NodeA, missing },
			region.NodeA, "region-1a", 0, ""},
		{"by the flag, and the Node object agrees", func(m *machine) { m.imds.Be(imds.Strange); m.id = region.NodeA },
			region.NodeA, "region-1a", 0, ""},
		{
			"by the flag, and nobody agrees", func(m *machine) { t.Setenv("AWS_REGION", "region-1"); m.id = region.NodeC },
			region.NodeC, "region-1b", 1,
			`says that this is \"i-0aaaaaaaaaaaaaaaa\", and --node-id that it is \"i-0cccccccccccccccc\"`,
		},
		{
			"by the flag, and nobody else knows", func(m *machine) {
				t.Setenv("AWS_REGION", "region-1")
				m.imds.Be(imds.Strange)
				m.id, m.node = region.NodeA, missing
			}, region.NodeA, "region-1a", 1, `the Node object \"n\" does not exist`,
		},
		{"by who opens the backend, who asks nobody", func(m *machine) {
			t.Setenv("AWS_REGION", "region-1")
			m.id, m.node = region.NodeC, nil
		}, region.NodeC, "region-1b", 1, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := newMachine(t)
			row.edit(m)
			began := time.Now()
			instance, err := m.open(t)
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took > 2*time.Minute {
				t.Errorf("it took %v to start", took)
			}
			before := total(m.ec2.Calls())
			place, err := instance.Node.(backends.Locator).Topology(t.Context())
			if err != nil || instance.NodeID != row.id || place["topology.kubernetes.io/zone"] != row.zone ||
				place["topology.ebs.csi.stowage.dev/zone"] != row.zone {
				t.Errorf("it is %s in %v, %v; want %s in %s", instance.NodeID, place, err, row.id, row.zone)
			}
			if asked := total(m.ec2.Calls()) - before; before != 0 || asked != row.asked {
				t.Errorf("EC2 was asked %d times at the start and %d times for the zone, want 0 and %d", before, asked, row.asked)
			}
			if text := m.log.String(); strings.Contains(text, "WARN") != (row.warns != "") ||
				!strings.Contains(text, row.warns) {
				t.Errorf("the log has\n%swant a warning of %q", text, row.warns)
			}
			// A process that does not wait for an answer may not even have sent a request.
			if asked := len(m.imds.Requests()) > 0; asked == (m.node == nil) && m.near == 0 {
				t.Errorf("the metadata service was asked: %t", asked)
			}
		})
	}
}

// TestInstanceIsNotFound checks the error texts.
func TestInstanceIsNotFound(t *testing.T) {
	const unset = "; --node-id is not set: set it, such as i-0123456789abcdef0, or see to one of the others"
	absent := `; the Node object "n" does not exist`
	foreign := object(backends.NodeInfo{ProviderID: "gce://project/zone/name"}, nil)
	for _, row := range []struct {
		name string
		edit func(m *machine)
		want string
	}{
		{"too far", func(m *machine) { m.silence(imds.Far) },
			"IMDS did not answer within 10ms: pods on a network of their own reach it only if the instance's " +
				"HttpPutResponseHopLimit is 2 at least" + absent + unset},
		{"disabled by the SDK", func(*machine) { t.Setenv("AWS_EC2_METADATA_DISABLED", "true") },
			"IMDS was not asked, because AWS_EC2_METADATA_DISABLED is set" + absent + unset},
		{"disabled by EC2", func(m *machine) { m.imds.Be(imds.Disabled) },
			"IMDS refuses to answer (403): the instance's HttpEndpoint may be disabled" + absent + unset},
		{"not EC2", func(m *machine) { m.imds.Be(imds.Strange) },
			"IMDS knows nothing of it (404): is this EC2?" + absent + unset},
		{"the first version", func(m *machine) { m.imds.Be(imds.Old) },
			"IMDS knows nothing of it (404): is this EC2?" + absent + unset},
		{"nobody there", func(*machine) { t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:1") },
			"the metadata service at http://127.0.0.1:1 cannot be reached: dial tcp 127.0.0.1:1: connect: connection refused" +
				absent + unset},
		{"other metadata", func(m *machine) { m.imds.Tell(imds.Document{InstanceID: "i-00000abc;"}) },
			`IMDS says that the instance is "i-00000abc;": EC2's are such as i-0123456789abcdef0` + absent + unset},
		{"a fault", func(m *machine) { m.imds.Be(imds.Failing) }, "IMDS answers with status 500" + absent + unset},
		{"another cloud's node", func(m *machine) { m.imds.Be(imds.Strange); m.node = foreign }, `IMDS knows nothing of it (404): is this EC2?; the Node object "n" has the providerID "gce://project/zone/name", which is that of no EC2 instance, such as aws:///us-east-1a/i-0123456789abcdef0` + unset},
		{"no providerID", func(m *machine) { m.imds.Be(imds.Strange); m.node = object(backends.NodeInfo{}, nil) }, `IMDS knows nothing of it (404): is this EC2?; the Node object "n" has no providerID (yet): is the cloud's controller manager at work?` + unset},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := newMachine(t)
			m.node = object(backends.NodeInfo{}, errors.New("does not exist"))
			row.edit(m)
			want := "find out which machine this is: " + strings.Replace(row.want, "IMDS", "the metadata service at "+m.imds.URL,
				1)
			if _, err := m.open(t); !backends.Is(err, backends.Unavailable) || err.Error() != want {
				t.Errorf("it failed as %v with\n%v, want Unavailable with\n%s", backends.KindOf(err), err, want)
			}
		})
	}
}

// TestNoProxyIsAsked: a proxy's answer would be about the proxy's own instance.
func TestNoProxyIsAsked(t *testing.T) {
	m := newMachine(t)
	var asked atomic.Int32
	m.edit = func(c *ebs.Config) {
		c.AWS.Credentials = credentials.NewStaticCredentialsProvider("AKIDEXAMPLE", region.SecretKey, "")
		c.AWS.HTTPClient = awshttp.NewBuildableClient().WithTransportOptions(func(transport *http.Transport) {
			transport.Proxy = func(*http.Request) (*url.URL, error) {
				asked.Add(1)
				return nil, errors.New("a proxy was asked for")
			}
		})
	}
	instance, err := m.open(t)
	if err != nil || instance.NodeID != region.NodeA || asked.Load() != 0 {
		t.Fatalf("got %+v, %v, with %d requests through a proxy", instance, err, asked.Load())
	}
	if _, err := instance.Controller.Get(t.Context(), "vol-0123456789abcdef0"); err == nil || asked.Load() == 0 {
		t.Errorf("EC2 was asked without the proxy: %v", err)
	}
}
