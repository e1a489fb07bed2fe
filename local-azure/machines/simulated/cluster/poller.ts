const roundMs = 500;

/** Does something again and again until nothing is due, and from the start when it is woken. */
export class Poller {
  private timer: NodeJS.Timeout | undefined;
  private generation = 0;
  private readonly said = new Set<string>();

  /** @param round returns whether anything is still due */
  constructor(
    private readonly round: (log: (message: string) => void) => Promise<boolean>,
    private readonly log: (message: string) => void,
  ) {}

  wake(): void {
    this.stop();
    this.next(this.generation);
  }

  stop(): void {
    this.generation += 1;
    clearTimeout(this.timer);
  }

  private next(generation: number): void {
    this.timer = setTimeout(async () => {
      let due = true;
      try {
        due = await this.round((message) => this.sayOnce(message));
      } catch (error) {
        this.sayOnce((error as Error).message);
      }
      if (due && generation === this.generation) {
        this.next(generation);
      }
    }, roundMs);
    this.timer.unref();
  }

  /** What is amiss in one round is mostly amiss in the next. */
  private sayOnce(message: string): void {
    if (!this.said.has(message)) {
      this.said.add(message);
      this.log(message);
    }
  }
}
