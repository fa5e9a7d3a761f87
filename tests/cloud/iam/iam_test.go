package iam

import (
	"net/url"
	"testing"
)

func parsed(t *testing.T, text string) Policy {
	t.Helper()
	p, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestParseRefuses(t *testing.T) {
	statement := func(text string) string { return `{"Version": "2012-10-17", "Statement": [` + text + `]}` }
	for name, text := range map[string]string{
		"no JSON":             `{`,
		"another version":     `{"Version": "2008-10-17", "Statement": [{"Sid": "A", "Effect": "Allow", "Action": "ec2:X", "Resource": "*"}]}`,
		"no statement":        statement(``),
		"a denial":            statement(`{"Sid": "A", "Effect": "Deny", "Action": "ec2:X", "Resource": "*"}`),
		"all actions":         statement(`{"Sid": "A", "Effect": "Allow", "Action": "ec2:*", "Resource": "*"}`),
		"all but actions":     statement(`{"Sid": "A", "Effect": "Allow", "NotAction": "ec2:X", "Resource": "*"}`),
		"no ARN":              statement(`{"Sid": "A", "Effect": "Allow", "Action": "ec2:X", "Resource": "volume/*"}`),
		"an unknown operator": statement(`{"Sid": "A", "Effect": "Allow", "Action": "ec2:X", "Resource": "*", "Condition": {"StringLikeIfExists": {"a:b": "c"}}}`),
		"a name twice":        statement(`{"Sid": "A", "Effect": "Allow", "Action": "ec2:X", "Resource": "*"}, {"Sid": "A", "Effect": "Allow", "Action": "ec2:Y", "Resource": "*"}`),
	} {
		if _, err := Parse([]byte(text)); err == nil {
			t.Errorf("%s: it is accepted", name)
		}
	}
}

func TestConditions(t *testing.T) {
	for _, row := range []struct {
		condition string
		have      []string
		want      bool
	}{
		{`{"StringEquals": {"a:b": ["x", "y*"]}}`, []string{"x"}, true},
		{`{"StringEquals": {"a:b": ["x", "y*"]}}`, []string{"yz"}, false},
		{`{"StringEquals": {"a:b": "x"}}`, nil, false},
		{`{"StringLike": {"a:b": "*"}}`, []string{""}, true},
		{`{"StringLike": {"a:b": "*"}}`, nil, false},
		{`{"StringLike": {"a:b": "x/*"}}`, []string{"x/y/z"}, true},
		{`{"StringLike": {"a:b": "x.?"}}`, []string{"xyz"}, false},
		{`{"Null": {"a:b": "false"}}`, nil, false},
		{`{"Null": {"a:b": "false"}}`, []string{"x"}, true},
		{`{"Null": {"a:b": "true"}}`, []string{"x"}, false},
		{`{"ForAllValues:StringLike": {"a:b": "x/*"}}`, []string{"x/1", "x/2"}, true},
		{`{"ForAllValues:StringLike": {"a:b": "x/*"}}`, []string{"x/1", "y"}, false},
		{`{"ForAllValues:StringLike": {"a:b": "x/*"}}`, nil, true},
		{`{"StringLike": {"a:b": "x"}, "Null": {"c:d": "false"}}`, []string{"x"}, false},
	} {
		p := parsed(t, `{"Version": "2012-10-17", "Statement": [{"Sid": "A", "Effect": "Allow", "Action": "ec2:X", "Resource": "*", "Condition": `+row.condition+`}]}`)
		a := Access{Action: "ec2:X", Resource: arns + "volume/*"}
		if row.have != nil {
			a.Context = map[string][]string{"a:b": row.have}
		}
		if have := p.Allows(a); have != row.want {
			t.Errorf("%s with %q: allowed %t, want %t", row.condition, row.have, have, row.want)
		}
	}
}

// TestResources distinguishes existing resources from those to be created.
func TestResources(t *testing.T) {
	p := parsed(t, `{"Version": "2012-10-17", "Statement": [{"Sid": "A", "Effect": "Allow", "Action": ["ec2:X"], "Resource": ["arn:aws:ec2:*:*:volume/vol-*"]}]}`)
	for resource, want := range map[string]bool{arns + "volume/vol-1": true, arns + "volume/*": false,
		arns + "snapshot/vol-1": false, "*": false} {
		if have := p.Allows(Access{Action: "ec2:X", Resource: resource}); have != want {
			t.Errorf("%s: allowed %t, want %t", resource, have, want)
		}
	}
	if p.Allows(Access{Action: "ec2:Y", Resource: arns + "volume/vol-1"}) {
		t.Error("another action is allowed")
	}
}

// TestAccesses checks the number of rights that requests need, and the context of one right.
func TestAccesses(t *testing.T) {
	tags := func(id string) map[string]string { return map[string]map[string]string{"vol-1": {"own": "er"}}[id] }
	for request, want := range map[string]int{
		"Action=DescribeVolumes": 1,
		"Action=CreateVolume":    1,
		"Action=CreateVolume&TagSpecification.1.Tag.1.Key=a&SnapshotId=snap-1":             3,
		"Action=CopyVolumes&SourceVolumeId=vol-1&TagSpecification.1.Tag.1.Key=a":           3,
		"Action=AttachVolume&VolumeId=vol-1&InstanceId=i-1":                                2,
		"Action=DeleteTags&ResourceId.1=vol-1&ResourceId.2=snap-1&Tag.1.Key=a&Tag.2.Key=b": 2,
	} {
		values, err := url.ParseQuery(request)
		if err != nil {
			t.Fatal(err)
		}
		if list, known := accesses(values, tags); len(list) != want || !known {
			t.Errorf("%s takes %v, known %t: want %d rights", request, list, known, want)
		}
	}
	if _, known := accesses(url.Values{"Action": {"RunInstances"}}, tags); known {
		t.Error("what RunInstances takes is said to be known")
	}
	list, _ := accesses(url.Values{"Action": {"DeleteTags"}, "ResourceId.1": {"vol-1"}, "Tag.1.Key": {"a"}}, tags)
	if c := list[0].Context; len(c) != 2 || c["ec2:ResourceTag/own"][0] != "er" || c["aws:TagKeys"][0] != "a" {
		t.Errorf("taking a tag away has the context %v", c)
	}
}
