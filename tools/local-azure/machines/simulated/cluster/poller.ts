const intervalMs = 500;

/** Does something again and again until nothing is due, and from the start when it is woken. */
export class Poller {
  private timer: NodeJS.Timeout | undefined;
  private generation = 0;
  private readonly logged = new Set<string>();

  /** @param poll returns whether anything is still due */
  constructor(
    private readonly poll: (log: (message: string) => void) => Promise<boolean>,
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
        due = await this.poll((message) => this.logOnce(message));
      } catch (error) {
        this.logOnce((error as Error).message);
      }
      if (due && generation === this.generation) {
        this.next(generation);
      }
    }, intervalMs);
    this.timer.unref();
  }

  /** An error of one poll mostly comes again in the next. */
  private logOnce(message: string): void {
    if (!this.logged.has(message)) {
      this.logged.add(message);
      this.log(message);
    }
  }
}
