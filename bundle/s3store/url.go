// SPDX-License-Identifier: Apache-2.0

package s3store

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Form is how a store's URL is written.
const Form = "s3://BUCKET/PREFIX?endpoint=URL&region=REGION"

// parameters are what a URL may say after the "?".
var parameters = map[string]func(o *Options, value string) error{
	"endpoint":      func(o *Options, v string) error { o.Endpoint = v; return nil },
	"region":        func(o *Options, v string) error { o.Region = v; return nil },
	"profile":       func(o *Options, v string) error { o.Profile = v; return nil },
	"checksum":      func(o *Options, v string) error { o.Checksum = v; return nil },
	"create_bucket": func(o *Options, v string) error { return setBool(&o.CreateBucket, v) },
	"path_style": func(o *Options, v string) error {
		o.PathStyle = new(bool)
		return setBool(o.PathStyle, v)
	},
}

func setBool(b *bool, value string) (err error) {
	if *b, err = strconv.ParseBool(value); err != nil {
		return errors.New("want true or false")
	}
	return nil
}

// Parse reads a store's URL. Its errors show no part of it that may be a secret.
func Parse(where string) (Options, error) {
	u, err := url.Parse(where)
	if err != nil || u.Scheme != "s3" || u.Opaque != "" {
		return Options{}, fmt.Errorf("the store's URL can't be read: want %s", Form)
	}
	if u.User != nil {
		return Options{}, fmt.Errorf("the store's URL has a user or password in it; %s", credentialsHint)
	}
	if u.Fragment != "" {
		return Options{}, fmt.Errorf("the store's URL has a # in it: want %s", Form)
	}
	o := Options{Bucket: u.Host, Prefix: strings.Trim(u.Path, "/")}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return Options{}, fmt.Errorf("what follows the ? in the store's URL can't be read: want %s", Form)
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if err := o.set(name, query[name]); err != nil {
			return Options{}, err
		}
	}
	if err := o.Validate(); err != nil {
		return Options{}, fmt.Errorf("store s3://%s: %w", u.Host+u.Path, err)
	}
	return o, nil
}

func (o *Options) set(name string, values []string) error {
	set, ok := parameters[name]
	switch {
	case !ok && secretive(name):
		return fmt.Errorf("the store's URL has credentials in it (%.40s); %s", name, credentialsHint)
	case !ok:
		return fmt.Errorf("the store's URL has a parameter %.40q: want %s", name, strings.Join(slices.Sorted(maps.Keys(parameters)), ", "))
	case len(values) > 1:
		return fmt.Errorf("the store's URL has %s %d times: want it once", name, len(values))
	}
	if err := set(o, values[0]); err != nil {
		return fmt.Errorf("%s=%.20s in the store's URL: %w", name, values[0], err)
	}
	return nil
}

// secretive says whether a parameter's name is one that credentials go by.
func secretive(name string) bool {
	name = strings.ToLower(name)
	for _, word := range []string{"key", "secret", "token", "password", "credential", "signature"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

// URL is the store's name for people and records: what is needed to find it, and no more.
func (o Options) URL() string {
	q := url.Values{}
	for name, value := range map[string]string{"endpoint": o.Endpoint, "region": o.Region} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if o.PathStyle != nil {
		q.Set("path_style", strconv.FormatBool(*o.PathStyle))
	}
	// An endpoint is easier to read, and to copy, with its slashes.
	query := strings.NewReplacer("%3A", ":", "%2F", "/").Replace(q.Encode())
	u := url.URL{Scheme: "s3", Host: o.Bucket, RawQuery: query}
	if o.Prefix != "" {
		u.Path = "/" + o.Prefix
	}
	return u.String()
}
