// The model that comes from the kernel. The interfaces are those of widgets/wire.py, detail.py, model.py and features; a test compares them.

export interface LensMark {
  id: string;
  start: number;
  end: number;
  outcome: string;
}

export interface LensGuards {
  count: number;
  full: string;
  failed: boolean;
}

export interface LensLine {
  line: number;
  text: string;
  gap?: number;
  graphs?: number[];
  marks?: LensMark[];
  state?: string;
  reason?: string;
  id?: string;
  region?: string[];
  quiet?: boolean;
  guards?: LensGuards;
}

export interface LensFile {
  file: string;
  label: string;
  lines: LensLine[];
  breaks?: number;
  graphs?: number;
  owner?: string;
}

export interface Shape {
  id: string;
  kind: string;
  x: number;
  y: number;
  w: number;
  h: number;
  title: string;
  note: string;
  full: string;
  tone?: number;
  lines?: string[];
  badge?: string;
  group?: string;
  region?: string;
  contents?: string[];
  inside?: Picture;
}

export interface Arrow {
  source: string;
  target: string;
  kind: "within" | "recompiles" | "continues" | "calls" | "hits";
  points: number[][];
  label?: string;
  at?: number[];
  full: string;
}

export interface Picture {
  width: number;
  height: number;
  groups: Shape[];
  boxes: Shape[];
  arrows: Arrow[];
  folded: string;
}

export interface FxNode {
  name: string;
  op: string;
  kind: string;
  target: string;
  value: string;
  reads: number[];
  full: string;
  line?: number;
  file?: string;
  place?: string;
  time?: string;
  heat?: number;
}

export interface FxPicture {
  width: number;
  height: number;
  first: number;
  boxes: number[][];
  titles: string[];
  notes: string[];
  joined: number[][];
  edges: number[][][];
  folds?: FxFold[];
}

export interface FxFold {
  name: string;
  first: number;
  count: number;
  inside: FxPicture;
  heat?: number;
}

export interface FxBody {
  nodes: FxNode[];
  picture: FxPicture;
}

export interface Bar {
  label: string;
  value: string;
  part: number;
}

export interface BarGroup {
  title: string;
  bars: Bar[];
}

export interface RunBody {
  graph: string;
  text: string[];
  groups: BarGroup[];
  code: string;
}

export interface Part<Kind, Body> {
  key: string;
  name: string;
  kind: Kind;
  body: Body;
}

export type AnyPart =
  | Part<"prose", ProseBody>
  | Part<"code", CodeBody>
  | Part<"source", SourceBody>
  | Part<"stack", StackEntry[]>
  | Part<"graph", FxBody>
  | Part<"list", string[][]>
  | Part<"issue", string>
  | Part<"run", RunBody>
  | Part<"fix", FixBody>
  | Part<"stage", StageBody>;
export interface StageBody {
  graph: string;
  stage: string;
  number: number;
  text?: string;
}
export interface FixRow {
  words: string;
  verdict: "proved" | "refused" | "untried";
  gain: string;
  assumption: string;
  diff: string[];
}
export interface FixBody {
  chosen: FixRow[];
  others: FixRow[];
  cell: string;
}
export type ProseBody = { text: string[]; todo: string[]; code: string[] };
export type CodeBody = { text: string; lang: string; start?: number };
export type SourceBody = { file: string; start: number; end: number };
export type StackEntry = { place: string; file: string; line: number; function: string; source: string };
export interface SymbolLinks {
  frame: string;
  about: Record<string, string>;
}

export interface Detail {
  kind: string;
  title: string;
  code: string;
  place: string;
  copy: string;
  facts: string[][];
  parts: AnyPart[];
  links?: string[][];
  symbols?: SymbolLinks;
  target?: string;
  file?: string;
  line?: number;
}

export interface BreakRow {
  id: string;
  place: string;
  code: string;
  outcome: string;
  outcome_text: string;
  type: string;
  hits: number;
  allowed: boolean;
  resumes: number;
  target: string;
  cost?: string;
}

export interface RecompileRow {
  id: string;
  title: string;
  name: string;
  place: string;
  cause: string;
  full: string;
  facts: string;
  refused: boolean;
}

export interface TimeSegment {
  kind: string;
  lane: number;
  x: number;
  w: number;
  label: string;
  full: string;
  id: string;
  tone?: number;
}

export interface Share {
  name: string;
  kind: string;
  part: number;
  full: string;
}

export interface InputRow {
  arguments: string;
  outcome: string;
  words: string;
  id: string;
}

export interface TimeLine {
  total: string;
  call: string;
  profiled: string;
  lanes: string[];
  segments: TimeSegment[];
  shares: Share[];
  verdict: string;
  first: string;
  first_id: string;
  devices: string;
  inputs: InputRow[];
  inputs_summary: string;
}

export interface PhaseRow {
  name: string;
  kind: string;
  what: string;
  own: string;
  total: string;
  count: number;
  where: string;
  id: string;
}

export interface TunedRow {
  name: string;
  tried: string;
  best: string;
  where: string;
  id: string;
}

export interface CompileTimeLine {
  title: string;
  total: string;
  lanes: string[];
  segments: TimeSegment[];
  shares: Share[];
  rows: PhaseRow[];
  tuned: TunedRow[];
  caches: string[];
  repeats: string[];
  notes: string[];
}

export interface Chip {
  text: string;
  kind: string;
  id?: string;
  full?: string;
}

export interface CausePlace {
  id: string;
  place: string;
  code: string;
  function: string;
  times: number;
  owner: string;
  ids: string[];
}

export interface CauseRow {
  id: string;
  kind: string;
  count: string;
  title: string;
  fix: string;
  cost: string;
  eager: string[];
  places: CausePlace[];
}

export interface CallRow {
  id: string;
  depth: number;
  name: string;
  place: string;
  owner: string;
  events: string[][];
  part: number;
  eager: number;
  folded: boolean;
  ids: string[];
}

export interface Overview {
  first: string;
  left: string;
  first_id: string;
  causes: CauseRow[];
  calls: CallRow[];
  library: string;
  well: string;
  measured: boolean;
  by_cost: boolean;
}

/** Sizes in pixels that the static picture and the view share. */
export interface Drawing {
  inset: number;
  break_inset: number;
  title_height: number;
  title_baseline: number;
  line_height: number;
  first_line: number;
  region_height: number;
  fold_head: number;
  corner: number;
  box_corner: number;
  bend: number;
}

export interface ViewModel {
  schema: number;
  headline: string;
  name: string;
  counts: string[][];
  chips: Chip[];
  first: string;
  overview: Overview | null;
  split: Picture;
  drawing: Drawing;
  lens: LensFile[];
  details: Record<string, Detail>;
  breaks: BreakRow[];
  recompiles: RecompileRow[];
  time: TimeLine | null;
  compile_time: CompileTimeLine | null;
  notes: string[];
  settings: Record<string, unknown>;
  origin: string;
  fixable: boolean;
}
