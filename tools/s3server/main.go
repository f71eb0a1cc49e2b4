// SPDX-License-Identifier: Apache-2.0

// S3server serves an S3 API over a temporary directory, for tests: a real server,
// with signatures, conditions and multipart uploads, and buckets in the path or in the host
// name. It prints one line of JSON when it
// takes requests, and ends, with its directory, when its standard input does: so it never
// outlives the test that started it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/versity/versitygw/auth"
	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
	"github.com/versity/versitygw/s3api"
)

// Server is what is printed.
type Server struct {
	Endpoint  string `json:"endpoint"`
	Region    string `json:"region"`
	Bucket    string `json:"bucket"`
	AccessKey string `json:"access_key"`
	SecretKey string `json:"secret_key"`
	// Domain is the host name that has buckets before it.
	Domain string `json:"domain"`
}

// answer is where the line goes. What the libraries print there goes nowhere.
var answer = os.Stdout

func main() {
	if null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0); err == nil {
		os.Stdout = null
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "s3server:", err)
		os.Exit(1)
	}
}

func run() error {
	dir, err := os.MkdirTemp("", "tidemill-s3-")
	if err != nil {
		return err
	}
	// The backend changes into the root, which must not keep it from being removed.
	defer func() {
		_ = os.Chdir("/")
		_ = os.RemoveAll(dir)
	}()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	be, err := backend(dir)
	if err != nil {
		return err
	}
	me := Server{Region: "us-east-1", Bucket: "tidemill-test", AccessKey: "tidemill-test-access", SecretKey: "tidemill-test-secret", Domain: "s3.test"}
	if err := makeBucket(ctx, be, me); err != nil {
		return err
	}
	// A port that is free now may be another's a moment later.
	for range 20 {
		if err = serve(ctx, be, me); !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// backend keeps what S3 knows of an object in extended attributes where the file system
// has them, else in files beside the root.
func backend(dir string) (*posix.Posix, error) {
	root, sidecar := filepath.Join(dir, "root"), filepath.Join(dir, "sidecar")
	for _, d := range []string{root, sidecar} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return nil, err
		}
	}
	if x := (meta.XattrMeta{}); x.Test(root) == nil {
		return posix.New(root, x, posix.PosixOpts{NewDirPerm: 0o755})
	}
	s, err := meta.NewSideCar(sidecar)
	if err != nil {
		return nil, err
	}
	return posix.New(root, s, posix.PosixOpts{NewDirPerm: 0o755, SideCarDir: sidecar})
}

func makeBucket(ctx context.Context, be *posix.Posix, me Server) error {
	acl, err := json.Marshal(auth.ACL{Owner: me.AccessKey})
	if err != nil {
		return err
	}
	//lint:ignore SA1029 the backend looks for this key
	ctx = context.WithValue(ctx, "bucket-owner", auth.Account{Access: me.AccessKey})
	return be.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: &me.Bucket, CreateBucketConfiguration: &s3types.CreateBucketConfiguration{}}, acl)
}

func serve(ctx context.Context, be *posix.Posix, me Server) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		return err
	}
	me.Endpoint = "http://" + addr
	return embedgw.RunVersityGW(ctx, be, &embedgw.Config{
		RootUserAccess: me.AccessKey, RootUserSecret: me.SecretKey, Region: me.Region, Ports: []string{addr},
		MaxConnections: 10_000, MaxRequests: 10_000, MultipartMaxParts: 10_000, Quiet: true, KeepAlive: true,
		VirtualDomain: me.Domain,
		S3Options:     []s3api.Option{s3api.WithOnListen(func() { _ = json.NewEncoder(answer).Encode(me) })},
	})
}
