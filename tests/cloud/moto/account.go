package moto

import (
	"context"
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// The client's identity, which moto does not verify.
const (
	Region    = "us-east-1"
	Zone      = "us-east-1a"
	AccessKey = "AKIDEXAMPLE"
	SecretKey = "s3cr3t-access-key"
)

// Config returns the SDK's configuration for moto at a URL. It disables keep-alive: a request on a connection that moto
// is about to close would fail.
func Config(url string) aws.Config {
	return aws.Config{
		Region: Region, BaseEndpoint: &url, Credentials: credentials.NewStaticCredentialsProvider(AccessKey, SecretKey, ""),
		HTTPClient: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
	}
}

// Instances starts machines in Zone and returns their IDs.
func Instances(ctx context.Context, url string, n int) (ids []string, err error) {
	client := ec2.NewFromConfig(Config(url))
	out, err := client.RunInstances(ctx, &ec2.RunInstancesInput{
		ImageId: aws.String("ami-12345678"), MinCount: aws.Int32(int32(n)), MaxCount: aws.Int32(int32(n)),
		InstanceType: types.InstanceTypeM5Large,
		Placement:    &types.Placement{AvailabilityZone: aws.String(Zone)},
	})
	if err != nil {
		return nil, err
	}
	for _, i := range out.Instances {
		ids = append(ids, aws.ToString(i.InstanceId))
	}
	if len(ids) != n {
		return nil, fmt.Errorf("moto has started %d machines, want %d", len(ids), n)
	}
	return ids, nil
}
