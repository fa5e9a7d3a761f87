package ec2_test

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
)

// TestScatteredPages reads pages in random order, after a first one that is empty.
func TestScatteredPages(t *testing.T) { synctest.Test(t, scatteredPages) }

func scatteredPages(t *testing.T) {
	settings := config()
	settings.Scattered = true
	c := start(t, settings)
	for range 20 {
		c.volume(nil)
	}
	var pages []int
	var shown []string
	in := &ec2.DescribeVolumesInput{MaxResults: aws.Int32(10)}
	for all := ec2.NewDescribeVolumesPaginator(c.Client, in); all.HasMorePages(); {
		page, err := all.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, len(page.Volumes))
		for _, v := range page.Volumes {
			shown = append(shown, *v.VolumeId)
		}
	}
	if !slices.Equal(pages, []int{0, 10, 10, 3}) { // with three root disks
		t.Errorf("the pages have %d volumes, want 0, 10, 10 and 3", pages)
	}
	var made []string
	for _, v := range c.server.Volumes() {
		made = append(made, v.ID)
	}
	shown = slices.DeleteFunc(shown, func(id string) bool { return !slices.Contains(made, id) })
	if slices.Equal(shown, made) {
		t.Error("the volumes are in the order of their creation, want another")
	}
	slices.Sort(shown)
	slices.Sort(made)
	if !slices.Equal(shown, made) {
		t.Errorf("shown are %q, want each of %q once", shown, made)
	}
}
