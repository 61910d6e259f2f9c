// The types that the modules of the view share: its host, the context of its parts, and the interface of each part.

import type { FxNode, FxPicture, ViewModel } from "./wire";

export type ViewElement = HTMLElement | SVGElement;
export type Select = (id: string) => void;
export type Region = { target: string; set: string };
export type Message =
  | { kind: "run_again"; settings: Record<string, unknown>; regions: Region[] }
  | { kind: "run_graph"; graph: string }
  | { kind: "save"; path: string }
  | { kind: "stop" }
  | { kind: "ping" };

/** What the view is shown in: a notebook's widget or a stand-alone page. */
export interface Host {
  /** Whether a kernel may answer: true in a notebook. */
  live: boolean;
  /** The value of a trait of the Python side. */
  get(name: string): any;
  set(name: string, value: unknown): void;
  /** Call `act` when a trait changes; returns a function that stops this. */
  on(name: string, act: () => void): () => void;
  /** Show this hash in the address. */
  link(hash: string): void;
  /** Call `act` when the connection to the kernel changes. */
  connection?(act: () => void): () => void;
  /** Call `act` when the address changes; returns the hash that it has now. */
  hash?(act: (hash: string) => void): string;
  /** Interrupt the kernel; false where that is not possible. */
  interrupt?(): boolean;
  /** Send a message: "done", or "gone" after `patience` milliseconds without an answer. */
  ask(message: Message, patience: number): Promise<string>;
  close(): void;
}

/** Changes that wait for "Run again". */
export interface Pending {
  settings: Record<string, unknown>;
  regions: Map<string, string>;
  readonly count: number;
  /** Change a setting; setting it to its value `now` undoes the change. */
  set(name: string, value: unknown, now: unknown): void;
  /** Set a region to "allow" or "error"; setting it to the same again undoes the change. */
  region(target: string, set: string): void;
  /** The message that asks for the next run; `more`: settings beside the pending ones. */
  request(more?: Record<string, unknown>): Message;
  clear(): void;
}

/** What the parts of one view share. */
export interface Context {
  host: Host;
  pending: Pending;
  content: ViewModel | null;
  /** A note of the view's own, shown in place of the kernel's status. */
  local: string;
  /** Whether the kernel is gone. */
  gone: boolean;
  select: Select;
  /** Show a line in the source. */
  point(file: string | undefined, line: number | undefined): void;
  has(id: string): boolean;
  canRun(): boolean;
  /** The button that looks for fixes in another run; null where there is nothing to fix, or no kernel. */
  fixButton(): HTMLButtonElement | null;
  /** Draw the controls again, after a change that is pending. */
  changed(): void;
  link(id: string, part: string): void;
  request(message: Message): void;
}

/** A part of the view that shows what is selected. */
export interface SelectablePart {
  node: HTMLElement;
  draw(content: ViewModel): void;
  /** Highlight what is selected; returns a function that scrolls it into sight. */
  highlight(content: ViewModel, id: string): () => void;
}

/** A shape of the split graph, as Python drew it. */
export interface Shape {
  node: SVGElement;
  id: string;
  kind: string;
  /** The id of the frame that it is in, or "". */
  group: string;
  /** The ids of what it stands for. */
  contents: string[];
  x: number;
  y: number;
  w: number;
  h: number;
}
export interface Arrow {
  path: SVGPathElement;
  source: string;
  target: string;
  kind: string;
  label: string;
}
/** A split graph, or a part of one. */
export interface DrawnPicture {
  svg: SVGSVGElement;
  shapes: Shape[];
  arrows: Arrow[];
  width: number;
  height: number;
}

/** An FX graph, or a part of it, as shapes. */
export interface FxDrawing {
  width: number;
  height: number;
  boxes: FxBox[];
  arrows: { source: string; target: string; points: number[][] }[];
}
/** A node, or a fold of several; `at`: the position of the (first) node in the list of nodes. */
export interface FxBox extends Partial<Omit<FxNode, "kind" | "full">> {
  id: string;
  kind: string;
  x: number;
  y: number;
  w: number;
  h: number;
  at: number;
  title: string;
  note: string;
  full: string;
  inside?: FxPicture;
}

/** The part of anywidget's model that the view uses. */
export interface WidgetModel {
  get(name: string): any;
  set(name: string, value: unknown): void;
  save_changes(): void;
  send(message: object): void;
  on(name: string, act: (...values: any[]) => void): void;
  off(name: string, act: (...values: any[]) => void): void;
  widget_manager?: { kernel?: { interrupt?(): unknown } };
}
