export interface Clock {
  now(): Date;
  sleep(milliseconds: number): Promise<void>;
}

export const wallClock: Clock = {
  now: () => new Date(),
  sleep: (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds)),
};
