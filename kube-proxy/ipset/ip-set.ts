/** One set, its members as the dump writes them. */
export interface IpSet {
  readonly name: string;
  /** `hash:ip,port`, `bitmap:port`, `list:set`. */
  readonly type: string;
  readonly family: 4 | 6;
  readonly members: readonly string[];
}

export interface IpSets {
  readonly file: string;
  readonly sets: ReadonlyMap<string, IpSet>;
}
