/** Options that belong to targets; what is not one of them belongs to a match. */
export const targetOptions = new Set(
  `--to-destination --to-source --to-ports --to --random --random-fully --persistent --reject-with
  --set-mark --set-xmark --and-mark --or-mark --xor-mark --save-mark --restore-mark --mask --ctmask --nfmask
  --log-level --log-prefix --log-tcp-sequence --log-tcp-options --log-ip-options --log-uid --log-macdecode
  --nflog-group --nflog-prefix --nflog-size --nflog-range --nflog-threshold
  --queue-num --queue-balance --queue-bypass --queue-cpu-fanout
  --on-port --on-ip --tproxy-mark --notrack --zone --zone-orig --zone-reply --helper --ctevents --expevents --timeout
  --set-mss --clamp-mss-to-pmtu --gateway --checksum-fill --set-class --set-dscp --set-dscp-class --set-tos --and-tos --or-tos
  --ttl-set --ttl-dec --ttl-inc --hl-set --hl-dec --hl-inc --add-set --del-set --map-set --exist --map-mark --map-prio --map-queue
  --type --sack-perm --timestamp --wscale --mss --ecn --label --led-trigger-id --save --restore --selctx`.split(
    /\s+/,
  ),
);
