// SPDX-License-Identifier: Apache-2.0

package s3store_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemill/tidemill/bundle/s3store"
)

func TestParse(t *testing.T) {
	yes, no := true, false
	for where, want := range map[string]s3store.Options{
		"s3://evals":              {Bucket: "evals"},
		"s3://evals/":             {Bucket: "evals"},
		"s3://evals/a/b/":         {Bucket: "evals", Prefix: "a/b"},
		"s3://evals?region=eu":    {Bucket: "evals", Region: "eu"},
		"s3://e.v-als/p?profile=": {Bucket: "e.v-als", Prefix: "p"},
		"s3://evals/p?endpoint=https%3A%2F%2Fs3.example.com&path_style=false&create_bucket=true": {
			Bucket: "evals", Prefix: "p", Endpoint: "https://s3.example.com", PathStyle: &no, CreateBucket: true,
		},
		"s3://evals?endpoint=http://127.0.0.1:9000&path_style=1&checksum=when_supported&profile=dev": {
			Bucket: "evals", Endpoint: "http://127.0.0.1:9000", PathStyle: &yes, Checksum: s3store.WhenSupported, Profile: "dev",
		},
	} {
		got, err := s3store.Parse(where)
		if err != nil {
			t.Errorf("%s: %v", where, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", where, diff)
		}
	}
}

// What is refused is never shown where it may be a secret.
func TestParseRefuses(t *testing.T) {
	for where, want := range map[string]string{
		"":                                       "can't be read: want s3://BUCKET",
		"s3:evals":                               "can't be read",
		"https://evals":                          "can't be read",
		"s3://%zzhush":                           "can't be read",
		"s3://AKIA:hush@evals/p":                 "has a user or password in it; credentials come from AWS_ACCESS_KEY_ID",
		"s3://evals/p#hush":                      "has a #",
		"s3://evals?a=%zz":                       "what follows the ?",
		"s3://evals?access_key=hush":             "has credentials in it (access_key)",
		"s3://evals?X-Amz-Signature=hush":        "has credentials in it (X-Amz-Signature)",
		"s3://evals?session_token=hush":          "has credentials in it (session_token)",
		"s3://evals?endpoint=http://u:hush@h":    "endpoint has a user or password in it",
		"s3://evals?endpoint=hush":               "endpoint is no URL: want for example https://",
		"s3://evals?endpoint=http://h?t=hush":    "endpoint has a query",
		"s3://evals?colour=red":                  `parameter "colour": want checksum, create_bucket, endpoint, path_style, profile, region`,
		"s3://evals?region=a&region=b":           "region 2 times",
		"s3://evals?path_style=perhaps":          "path_style=perhaps in the store's URL: want true or false",
		"s3://evals?checksum=always":             `checksum "always": want when_required or when_supported`,
		"s3://":                                  `bucket ""`,
		"s3://no":                                `bucket "no": want 3 to 63`,
		"s3://evals:9000/p":                      `bucket "evals:9000"`,
		"s3://evals/a//b":                        `prefix "a//b"`,
		"s3://evals/.hidden":                     "segments that don't begin with a dot",
		"s3://evals/" + strings.Repeat("p", 101): "at most 100 bytes",
	} {
		_, err := s3store.Parse(where)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v; want %q in it", where, err, want)
		} else if strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %q shows the secret", where, err)
		}
	}
}
