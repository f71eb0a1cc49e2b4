#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
cat >server.pl <<'PERL'
use IO::Socket::INET;
my $s = IO::Socket::INET->new(LocalAddr => "127.0.0.1", LocalPort => 7007, Listen => 5, ReuseAddr => 1) or die $@;
while (my $c = $s->accept) { print $c "fixed white\n"; close $c }
PERL
setsid perl server.pl </dev/null >server.log 2>&1 &
until exec 3<>/dev/tcp/127.0.0.1/7007; do sleep 0.1; done 2>/dev/null
