// What the modules of the view share.

export interface Host {
  live: boolean;
  get(name: string): any;
  set(name: string, value: unknown): void;
  on(name: string, act: () => void): () => void;
  link(hash: string): void;
  connection?(act: () => void): () => void;
  hash?(act: (hash: string) => void): string;
  ask(message: object, patience: number): Promise<"done" | "gone">;
  close(): void;
}
