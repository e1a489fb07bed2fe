/** What a machine is at, and for how long; every change is told. */
export class Doing {
  private step = "";
  private since = Date.now();

  constructor(
    private readonly name: string,
    private readonly log: (message: string) => void,
  ) {}

  get now(): { readonly step: string; readonly seconds: number } {
    return { step: this.step, seconds: Math.round((Date.now() - this.since) / 1000) };
  }

  /** @param step nothing when it is at nothing */
  at(step: string): void {
    if (step === this.step) return;
    if (this.step !== "") this.log(`${this.name}: ${this.step}: ${this.now.seconds} s`);
    this.step = step;
    this.since = Date.now();
    if (step !== "") this.log(`${this.name}: ${step} begins`);
  }
}
