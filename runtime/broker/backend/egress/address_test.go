package egress

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

func TestAddresses(t *testing.T) {
	tests := map[string][]string{
		"": {
			"8.8.8.8", "10.0.0.1", "192.168.1.1", "172.16.0.9", "100.64.0.1", "2606:4700::1111", "fd00::1", "fc00::8",
			"::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1", "2001:0:808:808::f7f7:f7f7", "2001:db8::1",
			"64:ff9b:1::8.8.8.8", "::8.8.8.8", "::ffff:0:8.8.8.8", "168.63.129.17", "fd00:ec2::253", "223.255.255.255",
			"240.0.0.1", "fe00::1", "2001:db8::5efe:808:808",
		},
		kindLoopback: {
			"127.0.0.1", "127.255.255.254", "127.0.0.2", "::1", "::ffff:127.0.0.1", "::ffff:7f00:1", "::127.0.0.1",
			"64:ff9b::127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "2002:7f00:1::5", "::ffff:0:127.0.0.1",
			"2001:0:7f00:1::1", "2001:0:808:808::80ff:fffe", "2001:db8::5efe:7f00:1", "2001:db8::200:5efe:7f00:1",
			"64:ff9b:1::127.0.0.1", "64:ff9b:1:7f00:0:100::", "64:ff9b:1:7f:0:1::", "64:ff9b:1:0:7f:0:100:0", "::ffff:127.0.0.1%eth0",
		},
		kindLinkLocal: {
			"169.254.0.1", "169.254.169.254", "169.254.170.2", "fe80::1", "fe80::1%eth0", "febf:ffff::1",
			"::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::", "::169.254.169.254", "fe80::5efe:7f00:1",
		},
		kindMetadata: {
			"fd00:ec2::254", "fd00:ec2::23", "fd00:42::42", "fd20:ce::254", "168.63.129.16", "100.100.100.200", "192.0.0.192", "::ffff:100.100.100.200",
			"64:ff9b::168.63.129.16",
		},
		kindUnspecified: {"0.0.0.0", "0.0.0.1", "0.255.255.255", "::", "::ffff:0.0.0.0", "64:ff9b::", "2002::1", "::2"},
		kindMulticast:   {"224.0.0.1", "239.255.255.255", "ff02::1", "ff01::1", "ff0e::1", "::ffff:224.0.0.251", "64:ff9b::e000:1"},
		kindBroadcast:   {"255.255.255.255", "::ffff:255.255.255.255"},
	}
	policies := map[string]contract.OperatorPolicy{
		"closed": {}, "loopback": {AllowLoopback: true}, "link-local": {AllowLinkLocal: true},
		"both": {AllowLoopback: true, AllowLinkLocal: true}, "proxies": {ProxyFromEnvironment: true},
	}
	for want, addrs := range tests {
		for _, text := range addrs {
			for name, p := range policies {
				allowed := want == "" || want == kindLoopback && p.AllowLoopback ||
					(want == kindLinkLocal || want == kindMetadata) && p.AllowLinkLocal
				err := checkAddr(netip.MustParseAddr(text), p)
				var a *AddressError
				switch {
				case allowed && err != nil:
					t.Errorf("%s with policy %s: %v", text, name, err)
				case !allowed && (!errors.As(err, &a) || a.Kind != want):
					t.Errorf("%s with policy %s: %v, want %q", text, name, err, want)
				}
			}
		}
	}
}

func TestHostsBehindAProxy(t *testing.T) {
	tests := map[string][]string{
		"": {
			"tools.example", "tools.example.", "a", "10.0.0.1", "2606:4700::1111", "localhost.example", "my-localhost",
			"metadata.example", "x0", "0x.example", "1.example", "xn--bcher-kva.example",
		},
		kindLoopback: {
			"localhost", "LOCALHOST", "localhost.", "a.localhost", "a.b.LocalHost.", "127.0.0.1", "127.0.0.1.", "::1",
			"::ffff:127.0.0.1", "ip6-localhost", "localhost.localdomain",
		},
		kindLinkLocal: {"169.254.169.254", "169.254.169.254.", "fe80::1", "fe80::1%eth0"},
		kindMetadata:  {"metadata.google.internal", "Metadata.Google.Internal.", "instance-data", "168.63.129.16"},
		kindObscure: {
			"127.1", "127.0.1", "2130706433", "0x7f000001", "0X7F.1", "0177.0.0.1", "017700000001", "127.0.0.0x1", "0x7f.0.0.1",
			"8.8.8.08", "1.2.3.4.5", "256.1.1.1", "", ".", "99999999999", "a.0b1", "a%00.example",
			// Whoever sends these to a proxy makes ASCII of them: 127.0.0.1 and localhost.
			"１２７.0.0.1", "127。0。0。1", "ｌocalhost", "ⓛocalhost", "metadata.google。internal", "bücher.example",
		},
	}
	for want, hosts := range tests {
		for _, host := range hosts {
			err := checkHost(host, contract.OperatorPolicy{})
			var a *AddressError
			if want == "" && err != nil || want != "" && (!errors.As(err, &a) || a.Kind != want) {
				t.Errorf("%q: %v, want %q", host, err, want)
			}
		}
	}
	if err := checkHost("localhost", contract.OperatorPolicy{AllowLoopback: true}); err != nil {
		t.Errorf("localhost is allowed: %v", err)
	}
	if err := checkHost("metadata.google.internal", contract.OperatorPolicy{AllowLinkLocal: true}); err != nil {
		t.Errorf("metadata services are allowed: %v", err)
	}
	if err := checkHost("127.1", contract.OperatorPolicy{AllowLoopback: true, AllowLinkLocal: true}); err == nil {
		t.Error("an obscure address is allowed")
	}
}
