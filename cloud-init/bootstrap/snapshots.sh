# shellcheck shell=bash
# Snapshots of etcd: the timer.

save_snapshot() { etcd_snapshot save any; }

snapshot_unit=zoned-etcd-snapshot
snapshot_units=$root/etc/systemd/system/$snapshot_unit

# What saves snapshots came with the payload; where it does not come any more, it goes.
schedule_snapshots() {
  if has_task snapshots; then
    systemctl daemon-reload
    systemctl enable "$snapshot_unit.timer"
    systemctl restart "$snapshot_unit.timer"
    return
  fi
  systemctl disable --now "$snapshot_unit.timer"
  rm -f "$snapshot_units".{timer,service} "$root"/opt/zoned/etcd-snapshot.{sh,env}
  systemctl daemon-reload
}
