// Made from widgets/frontend by widgets/bundle.py: change it there.
const SVG_NS="http://www.w3.org/2000/svg";
function fill(node,props,children){
for(const[name,value]of Object.entries(props||{})){
if(value===null||value===undefined||value===false)continue;
if(name.startsWith("on"))node.addEventListener(name.slice(2),value);
else if(name==="text")node.textContent=value;
else node.setAttribute(name==="cls"?"class":name,value===true?"":String(value));
}
for(const child of children.flat())if(child!==null&&child!==undefined&&child!==false)node.append(child);
return node;
}
const h=(tag,props,...children)=>fill(document.createElement(tag),props,children);
const s=(tag,props,...children)=>fill(document.createElementNS(SVG_NS,tag),props,children);
function lamp(name){
let lit=new Set();
return(nodes)=>{
const now=new Set(nodes);
for(const node of lit)if(!now.has(node))node.setAttribute(name,"false");
for(const node of now)if(!lit.has(node))node.setAttribute(name,"true");
lit=now;
};
}
function reveal(box,node,center=false){
if(!box||!node)return;
const a=box.getBoundingClientRect(),b=node.getBoundingClientRect();
const up=b.top - a.top,left=b.left - a.left;
if(up<0||up + b.height>a.height)box.scrollTop +=center?up -(a.height - b.height)/ 2:up<0?up - 8:up + b.height - a.height + 8;
if(left<0||left + b.width>a.width)box.scrollLeft +=left<0||b.width>a.width?left - 12:left + b.width - a.width + 12;
}
async function copyText(text){
try{
await navigator.clipboard.writeText(text);
return true;
}catch{
const area=h("textarea",{style:"position:fixed;opacity:0"});
area.value=text;
document.body.append(area);
area.select();
const done=document.execCommand("copy");
area.remove();
return done;
}
}
function roving(box,selector,{vertical=true,enter=null}={}){
const items=()=>[...box.querySelectorAll(selector)];
let stop=null;
const mark=(now)=>{
if(stop&&stop!==now)stop.setAttribute("tabindex","-1");
stop=now;
stop.setAttribute("tabindex","0");
};
box.addEventListener("keydown",(event)=>{
const all=items(),at=all.indexOf(event.target.closest(selector));
if(at<0||event.altKey||event.ctrlKey||event.metaKey)return;
const[back,on]=vertical?["ArrowUp","ArrowDown"]:["ArrowLeft","ArrowRight"];
const to={[back]:at - 1,[on]:at + 1,Home:0,End:all.length - 1}[event.key];
if(to!==undefined&&all[to]){
mark(all[to]);
all[to].focus();
}else if(enter&&(event.key==="Enter"||event.key===" "))enter(all[at]);
else if(to===undefined)return;
event.preventDefault();
event.stopPropagation();
});
box.addEventListener("focusin",(event)=>{
const item=event.target.closest(selector);
if(item)mark(item);
});
return mark;
}
function hostTheme(doc,prefersDark){
const body=doc.body,root=doc.documentElement;
const lab=body&&body.dataset.jpThemeLight;
if(lab)return lab==="false"?"dark":"light";
const names=`${body?body.className:""} ${root.className} ${(body&&body.dataset.vscodeThemeKind)||""}`;
if(/vscode-(dark|high-contrast)(?!-light)/.test(names))return "dark";
if(/vscode-(light|high-contrast-light)/.test(names))return "light";
const said=root.getAttribute("theme")||root.dataset.theme||(body&&body.dataset.theme)||"";
if(/dark/.test(said))return "dark";
if(/light/.test(said))return "light";
if(/(^|\s)(dark|dark-theme)(\s|$)/.test(names))return "dark";
if(/(^|\s)(light|light-theme)(\s|$)/.test(names))return "light";
return prefersDark?"dark":"light";
}
function followTheme(view){
const system=matchMedia("(prefers-color-scheme: dark)");
const apply=()=>{view.dataset.theme=hostTheme(document,system.matches);};
const watch=new MutationObserver(apply);
const options={attributes:true,attributeFilter:["class","theme","data-theme","data-jp-theme-light","data-vscode-theme-kind"]};
watch.observe(document.documentElement,options);
watch.observe(document.body,options);
system.addEventListener("change",apply);
apply();
return()=>{
watch.disconnect();
system.removeEventListener("change",apply);
};
}
const KEYWORDS=new Set(("False None True and as assert async await break class continue def del elif else except finally for from " +
"global if import in is lambda match nonlocal not or pass raise return try while with yield").split(" "));
const TOKEN=/(#.*)|([rbfuRBFU]{0,2}(?:"""|'''))|([rbfuRBFU]{0,2}(?:"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?))|(\b\d[\w.]*)|(@[\w.]+)|([^\W\d]\w*)/uy;
function tokenize(line,open=""){
const out=[];
let at=0,plain="";
const push=(text,kind)=>{
if(plain)out.push([plain,""]);
plain="";
if(text)out.push([text,kind]);
};
if(open){
const end=line.indexOf(open);
if(end<0)return{tokens:line?[[line,"str"]]:[],open};
at=end + 3;
push(line.slice(0,at),"str");
open="";
}
let previous="";
while(at<line.length){
TOKEN.lastIndex=at;
const match=TOKEN.exec(line);
if(!match){
plain +=line[at++];
continue;
}
const[text,comment,triple,string,number,decorator,name]=match;
at +=text.length;
if(triple){
const quote=triple.slice(-3),end=line.indexOf(quote,at);
if(end<0){
push(line.slice(at - text.length),"str");
return{tokens:out,open:quote};
}
push(text + line.slice(at,end + 3),"str");
at=end + 3;
}else if(comment)push(text,"com");
else if(string)push(text,"str");
else if(number)push(text,"num");
else if(decorator&&!line.slice(0,at - text.length).trim())push(text,"dec");
else if(name&&KEYWORDS.has(text))push(text,"key");
else if(name&&(previous==="def"||previous==="class"))push(text,"def");
else plain +=text;
if(name)previous=text;
}
push("","");
return{tokens:out,open};
}
function withMarks(tokens,marks){
const out=[];
let column=0;
for(const[text,kind]of tokens){
let run="",mark=null;
for(const char of text){
const here=marks.find((m)=>column>=m.start&&column<m.end)||null;
if(run&&here!==mark){
out.push({text:run,kind,mark});
run="";
}
mark=here;
run +=char;
column +=1;
}
if(run)out.push({text:run,kind,mark});
}
return out;
}
function search(content,query){
const words=query.trim().toLowerCase();
if(!words)return[];
const line=/^(?:line\s*|:|l)?(\d+)$/.exec(words);
const found=[];
for(const[id,detail]of Object.entries(content.details)){
if(detail.kind==="fold")continue;
if(line){
const number=Number(line[1]);
const atLine=content.lens.some((f)=>f.lines.some((l)=>l.line===number&&(l.id===id||(l.marks||[]).some((m)=>m.id===id))));
if(detail.line===number||atLine)found.push(id);
}else if(`${detail.title} ${detail.code} ${detail.place} ${detail.kind}`.toLowerCase().includes(words))found.push(id);
}
return found;
}
function step(picture,id,key){
const all=[...picture.groups,...picture.boxes];
const here=all.find((shape)=>shape.id===id);
if(!here)return all.length?all[0].id:"";
const middle=(shape)=>[shape.x + shape.w / 2,shape.kind==="graph"||shape.kind==="break"||shape.kind==="fold"?shape.y + shape.h / 2:shape.y + 12];
const[x,y]=middle(here);
const linked=new Set();
for(const arrow of picture.arrows){
if(arrow.source===id)linked.add(arrow.target);
if(arrow.target===id)linked.add(arrow.source);
}
let best="",least=Infinity;
for(const shape of all){
if(shape.id===id)continue;
const[a,b]=middle(shape);
const ahead={ArrowDown:b - y,ArrowUp:y - b,ArrowRight:a - x,ArrowLeft:x - a}[key];
const aside=key==="ArrowDown"||key==="ArrowUp"?Math.abs(a - x):Math.abs(b - y);
if(!(ahead>1))continue;
const cost=(ahead + 2.5 * aside)*(linked.has(shape.id)?0.3:1);
if(cost<least)[best,least]=[shape.id,cost];
}
return best||id;
}
function sourceText(lens,{file,start,end}){
const found=lens.find((f)=>f.file===file);
const lines=found?found.lines.filter((l)=>l.line>=start&&l.line<=end):[];
return lines.flatMap((l,i)=>(i&&l.gap?["...",l.text]:[l.text])).join("\n");
}
const parseLink=(hash)=>{
const match=/^#?([a-z]+\d+)(?:\/(\w+))?$/.exec(hash||"");
return match?{id:match[1],part:match[2]||""}:null;
};
const linkTo=(id,part)=>`#${id}${part?"/" + part:""}`;
function pending(){
const settings={},regions=new Map();
return{
settings,regions,
set(name,value,now){
if(value===now)delete settings[name];
else settings[name]=value;
},
region(target,set){
if(regions.get(target)===set)regions.delete(target);
else regions.set(target,set);
},
get count(){return Object.keys(settings).length + regions.size;},
request(){return{kind:"run_again",settings:{...settings},regions:[...regions].map(([target,set])=>({target,set}))};},
clear(){
for(const name of Object.keys(settings))delete settings[name];
regions.clear();
},
};
}
function rounded(points,radius=7){
let path=`M${points[0][0]} ${points[0][1]}`;
for(let i=1;i + 1<points.length;i++){
const[[ax,ay],[x,y],[bx,by]]=points.slice(i - 1,i + 2);
const before=Math.hypot(ax - x,ay - y),after=Math.hypot(bx - x,by - y),r=Math.min(radius,before / 2,after / 2);
if(r<0.5)path +=`L${x} ${y}`;
else{
const part=(from,to,length)=>(to +((from - to)* r)/ length).toFixed(1);
path +=`L${part(ax,x,before)} ${part(ay,y,before)}Q${x} ${y} ${part(bx,x,after)} ${part(by,y,after)}`;
}
}
const[x,y]=points[points.length - 1];
return path + `L${x} ${y}`;
}
const unzipped=(data)=>{
const bytes=typeof data==="string"?Uint8Array.from(atob(data),(c)=>c.charCodeAt(0)):data;
return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
};
const clock=(seconds)=>(seconds<0.1?`${Math.round(seconds * 1000)} ms`:seconds<10?`${seconds.toFixed(1)} s`:`${Math.round(seconds)} s`);
const HEAD=34;
const held=(shape,fold)=>({...shape,x:shape.x + fold.x,y:shape.y + fold.y + HEAD});
function opened(picture,fold,open){
const inside=unfolded(fold.inside,open),right=fold.x + fold.w,end=fold.y + fold.h;
const wider=Math.max(0,inside.width - fold.w),more=Math.max(0,inside.height + HEAD - fold.h);
const across=(x)=>(x>=right?x + wider:x),down=(y)=>(y>=end - 0.5?y + more:y);
const beside=new Set(picture.boxes.filter((b)=>b.id!==fold.id&&down(b.y)===b.y&&down(b.y + b.h)>b.y + b.h).map((b)=>b.id));
const moved=(shape)=>({...shape,x:across(shape.x + shape.w / 2)- shape.w / 2,y:down(shape.y),h:beside.has(shape.id)?shape.h:down(shape.y + shape.h)- down(shape.y)});
const routed=(arrow,place)=>({...arrow,points:arrow.points.map(place),at:arrow.at&&place(arrow.at)});
const around=([x,y])=>[across(x),down(y)],start=(a)=>(beside.has(a.source)?[[across(a.points[0][0]),a.points[0][1]]]:[]),within=([x,y])=>[x + fold.x,y + fold.y + HEAD];
return{
...picture,
width:picture.width + wider,
height:picture.height + more,
groups:[...picture.groups.map(moved),{...fold,kind:"unfolded",w:fold.w + wider,h:fold.h + more},...inside.groups.map((g)=>held(g,fold))],
boxes:[...picture.boxes.filter((b)=>b.id!==fold.id).map(moved),...inside.boxes.map((b)=>held(b,fold))],
arrows:[...picture.arrows.map((a)=>({...routed(a,around),points:[...start(a),...a.points.map(around)]})),...inside.arrows.map((a)=>routed(a,within))],
};
}
function unfolded(picture,open){
const folds=picture.boxes.filter((b)=>b.inside&&open.has(b.id));
return folds.reduce((shown,{id})=>opened(shown,shown.boxes.find((b)=>b.id===id),open),picture);
}
const TONES=6;
const NOTES={skipped:"skipped",failed:"failed",empty:"empty",unfinished:"unfinished"};
function paintCode(box,text,marks=[],open=""){
const painted=tokenize(text,open);
for(const piece of withMarks(painted.tokens,marks)){
const cls=[piece.kind&&`dyn-t-${piece.kind}`,piece.mark&&`dyn-mark dyn-mark-${piece.mark.outcome}`].filter(Boolean).join(" ");
box.append(cls?h("span",{cls,text:piece.text,"data-id":piece.mark&&piece.mark.id}):piece.text);
}
return painted.open;
}
function badge(line){
const box=h("span",{cls:"dyn-badge"});
const put=(text,cls)=>box.append(h("b",{cls,text}));
if(line.marks)put("✂","dyn-b-break");
const graphs=line.graphs||[];
for(const n of graphs.slice(0,line.marks||graphs.length>2?1:2))put(String(n),`dyn-b-g${n % TONES}`);
if(graphs.length>2)put("+" +(graphs.length - 1),"dyn-b-more");
if(!line.marks&&!graphs.length&&line.state&&line.state!=="empty")put(line.state==="unfinished"?"…":"–","dyn-b-skip");
return box;
}
function row(line,previous,box){
const graphs=line.graphs||[];
const state=line.marks?"break":line.state||"";
const tone=state==="graph"?`dyn-l-g${graphs[0]% TONES}`:state?`dyn-l-${state}`:"";
const first=!previous||previous.state!==line.state||previous.id!==line.id;
const note=line.marks?line.reason:first?NOTES[state]||"":"";
const code=h("code");
box.open=paintCode(code,line.text,line.marks||[],box.open);
return h("div",{cls:`dyn-ln ${tone}`,role:"option","aria-selected":"false",tabindex:"-1",title:line.reason,"data-line":line.line,"data-id":line.marks?line.marks[0].id:line.id},
h("span",{cls:`dyn-no${line.region?` dyn-in-${line.region[0]}`:""}`,title:line.region&&line.region[1],text:line.line}),badge(line),code,note?h("span",{cls:"dyn-note",text:note}):h("span"));
}
function lensView(select){
const box=h("div",{cls:"dyn-src",role:"listbox","aria-label":"source lines"});
const open=(node,event)=>{
const mark=event&&event.target.closest(".dyn-mark");
const id=(mark&&mark.dataset.id)||node.dataset.id;
if(id)select(id);
};
const mark=roving(box,".dyn-ln",{enter:(node)=>open(node)});
box.addEventListener("click",(event)=>{
const node=event.target.closest(".dyn-ln");
if(node&&!String(getSelection()))open(node,event);
});
let rows=[];
const lamps=lamp("aria-selected");
return{
node:box,
draw(content){
rows=[];
const parts=[];
for(const file of content.lens){
const state={open:""};
let previous=null;
const lines=file.lines.map((line)=>{
if(line.gap)state.open="";
const node=row(line,line.gap?null:previous,state);
rows.push({node,line,file:file.file});
previous=line;
return line.gap?[h("div",{cls:"dyn-gap",role:"presentation",text:`⋯ ${line.gap} lines`}),node]:node;
});
parts.push(h("div",{role:"group","aria-label":file.label},content.lens.length>1?h("div",{cls:"dyn-file",title:file.file,text:file.label,role:"presentation"}):null,...lines));
}
box.replaceChildren(...parts);
if(rows[0])mark(rows[0].node);
},
light(content,id){
const detail=content.details[id]||{};
const number=detail.kind==="graph"?Number(detail.title.replace(/\D/g,"")):-1;
const on=rows.filter(({line,file})=>line.id===id||(line.marks||[]).some((m)=>m.id===id)||(line.graphs||[]).includes(number)||
(!["break","graph"].includes(detail.kind)&&detail.line===line.line&&detail.file===file)).map((row)=>row.node);
lamps(on);
if(on.length)mark(on[0]);
return()=>reveal(box,on[0],true);
},
point(file,line){
const found=rows.find((r)=>r.line.line===line&&r.file===file);
if(!found)return;
for(const r of rows)r.node.classList.toggle("dyn-point",r===found);
reveal(box,found.node,true);
},
};
}
let serial=0;
const triangle=(b,down)=>s("path",{cls:"dyn-fold",d:down?`M${b.x + 11} ${b.y + 14}h9l-4.5 6z`:`M${b.x + 13} ${b.y + b.h / 2 - 4.5}v9l6 -4.5z`});
const openShape=(g)=>[s("rect",{cls:"dyn-main",x:g.x,y:g.y,width:g.w,height:g.h,rx:8}),triangle(g,true),s("text",{x:g.x + 26,y:g.y + 21,cls:"dyn-strong",text:g.title}),
s("text",{x:g.x + g.w - 12,y:g.y + 21,cls:"dyn-soft","text-anchor":"end",text:g.note})];
function groupShape(g,ids){
if(g.kind==="unfolded")return openShape(g);
const head=26 + 16 *(g.lines||[]).length;
return[
g.badge==="recompile"&&s("rect",{cls:"dyn-frame",x:g.x + 4,y:g.y - 4,width:g.w,height:g.h,rx:8}),
s("rect",{cls:"dyn-frame dyn-main",x:g.x,y:g.y,width:g.w,height:g.h,rx:8,fill:g.kind==="skipped"?`url(#${ids.hatch})`:null}),
g.kind==="skipped"&&s("rect",{cls:"dyn-under",x:g.x + 5,y:g.y + 5,width:g.w - 10,height:head,rx:5}),
s("text",{x:g.x + 12,y:g.y + 22,cls:"dyn-name",text:g.title}),
s("text",{x:g.x + g.w - 12,y:g.y + 22,cls:"dyn-soft dyn-mono","text-anchor":"end",text:g.note}),
...(g.lines||[]).map((line,i)=>s("text",{x:g.x + 12,y:g.y + 40 + 16 * i,cls:"dyn-soft",text:line})),
];
}
const STRIP=20;
function boxShape(b){
const strip=b.kind==="break"&&b.region?STRIP:0,top=b.y + strip,height=b.h - strip;
const round=b.kind==="break"?height / 2:5,inset=b.kind==="break"?14:12,shift=b.inside?14:0,y=top + height / 2 + 4;
return[
strip&&s("rect",{cls:"dyn-area",x:b.x - 6,y:b.y,width:b.w + 12,height:b.h + 6,rx:8}),
strip&&s("text",{cls:"dyn-soft",x:b.x + 6,y:b.y + 14,text:b.lines[0]}),
s("rect",{cls:"dyn-main",x:b.x,y:top,width:b.w,height,rx:round}),
shift&&triangle(b,false),
s("text",{x:b.x + inset + shift,y,cls:"dyn-strong",text:b.title}),
s("text",{x:b.x + b.w - inset,y,cls:"dyn-soft","text-anchor":"end",text:b.note}),
];
}
function tip(id,cls){
return s("marker",{id,markerWidth:8,markerHeight:8,refX:7,refY:4,orient:"auto",markerUnits:"userSpaceOnUse"},s("path",{d:"M0 0.5L8 4L0 7.5z",cls}));
}
function drawPicture(picture,name){
const n=++serial,ids={hatch:`dyn-hatch-${n}`,soft:`dyn-tip-${n}`,hits:`dyn-tipb-${n}`};
const hatch=s("pattern",{id:ids.hatch,width:8,height:8,patternUnits:"userSpaceOnUse",patternTransform:"rotate(45)"},
s("rect",{width:8,height:8,cls:"dyn-hatch-a"}),s("rect",{width:4,height:8,cls:"dyn-hatch-b"}));
const node=(shape,parts)=>s("g",{cls:`dyn-node dyn-k-${shape.kind}${shape.tone===undefined?"":` dyn-g${shape.tone}`}${shape.badge?` dyn-is-${shape.badge}`:""}${shape.region?` dyn-r-${shape.region}`:""}`,
role:"button","aria-pressed":"false","aria-expanded":shape.inside?String(shape.kind==="unfolded"):null,tabindex:"-1","data-id":shape.id},s("title",{text:shape.full}),...parts);
return s("svg",{viewBox:`0 0 ${picture.width} ${picture.height}`,role:"group","aria-label":`split graph of ${name}; arrow keys follow the arrows`},
s("defs",{},hatch,tip(ids.soft,"dyn-tip"),tip(ids.hits,"dyn-tip dyn-tip-hits")),
...picture.groups.map((g)=>node(g,groupShape(g,ids))),
...picture.arrows.map((a)=>s("path",{cls:`dyn-arrow dyn-a-${a.kind}`,d:rounded(a.points),"marker-end":`url(#${a.kind==="hits"?ids.hits:ids.soft})`,"data-s":a.source,"data-t":a.target},s("title",{text:a.full}))),
...picture.boxes.map((b)=>node(b,boxShape(b))),
...picture.arrows.filter((a)=>a.label).map((a)=>s("text",{cls:"dyn-label",x:a.at[0],y:a.at[1],text:a.label})));
}
const LEGEND=[["graph","graph"],["break","graph break"],["allowed","allowed break"],["compiled","frame"],["recompile","compiled again"],["skipped","skipped frame"],["failed","failed frame"],["cached","cached frame"],["unfinished","unfinished frame"],["fold","folded"],["empty","empty frame"],["hits","same break, met again"],["allow","region: breaks allowed"],["error","region: breaks are errors"]];
function splitView(select,enter){
const pane=h("div",{cls:"dyn-pane",tabindex:"-1"});
const field=h("input",{cls:"dyn-search",type:"search",placeholder:"Search name or line","aria-label":"search the split graph by name or line"});
const found=h("span",{cls:"dyn-found",role:"status"});
const foldButton=h("button",{cls:"dyn-btn",type:"button",onclick:()=>redraw(opened()?[]:folds())});
const zoomer=(text,name,act)=>h("button",{cls:"dyn-btn dyn-icon",type:"button","aria-label":name,title:name,text,onclick:act});
const tools=h("div",{cls:"dyn-tools"},field,found,foldButton,zoomer("−","zoom out",()=>zoom(scale / 1.25)),zoomer("+","zoom in",()=>zoom(scale * 1.25)),zoomer("⤢","fit",()=>fit(0,1)));
const legend=h("div",{cls:"dyn-legend","aria-label":"legend",role:"note"});
const folded=h("div",{cls:"dyn-folded"});
const node=h("section",{cls:"dyn-split","aria-label":"split graph"},h("div",{cls:"dyn-bar"},h("h2",{text:"Split graph"}),tools),pane,folded,legend);
let last=null,picture=null,svg=null,scale=1,now="",open=new Set(),ids=[],touched=false,nodes=new Map(),arrows=[],stop=null;
const lamps=lamp("aria-pressed");
const folds=()=>last.split.boxes.filter((b)=>b.inside).map((b)=>b.id);
const opened=()=>folds().some((id)=>open.has(id));
function zoom(to){
scale=Math.min(3,Math.max(0.2,to));
touched=true;
size();
}
function size(){
if(!svg)return;
svg.setAttribute("width",Math.round(picture.width * scale));
svg.setAttribute("height",Math.round(picture.height * scale));
}
function fit(least=0.6,otherwise=0.8){
const room=pane.clientWidth - 2;
if(!picture||room<50)return;
const all=Math.min(1,room / picture.width);
scale=all<least?otherwise:all;
size();
}
function redraw(ids){
open=new Set(ids);
draw(last);
light(last,now)();
}
function toggle(id){
if(!folds().includes(id))return;
const place=()=>nodes.get(id).getBoundingClientRect().top,before=place();
redraw(open.has(id)?[...open].filter((other)=>other!==id):[...open,id]);
tabStop(id).focus({preventScroll:true});
const top=pane.getBoundingClientRect().top + 40;
pane.scrollTop +=place()-(open.has(id)?Math.min(before,top):before);
}
function draw(content){
last=content;
picture=unfolded(content.split,open);
svg=drawPicture(picture,content.name.slice(0,200));
nodes=new Map([...svg.querySelectorAll(".dyn-node")].map((n)=>[n.dataset.id,n]));
arrows=[...svg.querySelectorAll(".dyn-arrow")];
stop=null;
pane.replaceChildren(svg);
if(touched)size();
else fit();
if(!svg.hasAttribute("width"))size();
foldButton.hidden=!folds().length;
foldButton.textContent=opened()?"Fold all":"Unfold all";
folded.textContent=picture.folded&&!opened()?`folded: ${picture.folded}`:"";
const kinds=new Set([...picture.groups,...picture.boxes].map((shape)=>shape.kind));
if(picture.arrows.some((a)=>a.kind==="hits"))kinds.add("hits");
for(const{badge,region}of[...picture.groups,...picture.boxes])kinds.add(badge).add(region);
legend.replaceChildren(...LEGEND.filter(([kind])=>kinds.has(kind)).map(([kind,text])=>h("span",{},h("i",{cls:`dyn-key dyn-key-${kind}`}),text)));
tabStop(now);
find();
}
const seenAs=(id)=>{
if(!picture||nodes.has(id))return id;
const fold=picture.boxes.find((b)=>b.holds&&b.holds.includes(id));
return fold?fold.id:id;
};
function tabStop(id){
if(stop)stop.setAttribute("tabindex","-1");
stop=nodes.get(id)||[...nodes.values()][0];
if(stop)stop.setAttribute("tabindex","0");
return stop;
}
function light(content,chosen){
now=chosen;
if(!svg)return()=>{};
const id=seenAs(chosen);
lamps(nodes.has(id)?[nodes.get(id)]:[]);
for(const a of arrows)a.classList.toggle("dyn-on",a.dataset.s===id||a.dataset.t===id);
const at=tabStop(id);
const{group}=picture.boxes.find((b)=>b.id===id)||{};
return()=>{
if(!at||at.dataset.id!==id)return;
for(const node of[nodes.get(group),at])if(node)reveal(pane,node.querySelector(".dyn-main"));
};
}
function find(){
ids=last?search(last,field.value):[];
const on=Boolean(field.value.trim());
const lit=new Set(ids.map(seenAs));
for(const[id,n]of nodes)n.classList.toggle("dyn-dim",on&&!lit.has(id));
const hidden=ids.filter((id)=>!nodes.has(id)).length;
found.textContent=!on?"":ids.length?`${ids.length} found${hidden?`, ${hidden} folded`:""}`:"nothing found";
}
field.addEventListener("input",find);
field.addEventListener("keydown",(event)=>{
if(event.key==="Enter"&&ids.length)select(ids[(ids.indexOf(now)+ 1)% ids.length],"search");
else if(event.key==="Escape"){field.value="";find();}
else return;
event.preventDefault();
event.stopPropagation();
});
let drag=null;
pane.addEventListener("pointerdown",(event)=>{if(event.button===0&&event.pointerType==="mouse")drag={x:event.clientX,y:event.clientY,left:pane.scrollLeft,top:pane.scrollTop,far:false};});
pane.addEventListener("pointermove",(event)=>{
if(!drag||!(event.buttons&1))return;
const[dx,dy]=[event.clientX - drag.x,event.clientY - drag.y];
drag.far=drag.far||Math.hypot(dx,dy)>5;
if(drag.far)[pane.scrollLeft,pane.scrollTop]=[drag.left - dx,drag.top - dy];
});
pane.addEventListener("click",(event)=>{
const far=drag&&drag.far;
drag=null;
const hit=event.target.closest(".dyn-node");
if(!hit||far)return;
const{id}=hit.dataset;
select(id);
toggle(id);
(nodes.get(id)||hit).focus({preventScroll:true});
});
pane.addEventListener("wheel",(event)=>{
if(!event.ctrlKey&&!event.metaKey)return;
event.preventDefault();
zoom(scale *(event.deltaY<0?1.12:0.89));
},{passive:false});
pane.addEventListener("keydown",(event)=>{
const at=event.target.closest(".dyn-node");
if(event.key==="+"||event.key==="-")zoom(event.key==="+"?scale * 1.25:scale / 1.25);
else if(!at||event.ctrlKey||event.metaKey||event.altKey)return;
else if(event.key.startsWith("Arrow")){
const stop=tabStop(step(picture,at.dataset.id,event.key));
stop.focus({preventScroll:true});
reveal(pane,stop.querySelector(".dyn-main"));
}else if(event.key==="Enter"||event.key===" "){
const{id}=at.dataset;
select(id);
if(event.key==="Enter")folds().includes(id)?toggle(id):enter();
}
else return;
event.preventDefault();
event.stopPropagation();
});
const watch=new ResizeObserver(()=>{
if(touched||!last)return;
fit();
light(last,now)();
});
watch.observe(pane);
return{node,draw,light,stop:()=>watch.disconnect()};
}
const ROW=22;
const HEIGHT=330;
const hot=(node)=>(node.heat===undefined?null:`--h:${node.heat}%`);
function fxRow(node,i,point,now){
return h("div",{"aria-pressed":String(i===now),cls:`dyn-fxrow dyn-fx-${node.kind}`,role:"button",tabindex:"-1",title:node.full,style:`top:${i * ROW}px`,"data-i":i,onclick:()=>point(i)},
h("i",{cls:"dyn-dot"}),h("b",{text:node.name}),h("span",{text:node.op==="placeholder"?"input":node.target}),h("span",{cls:"dyn-took",style:hot(node),text:node.time}),h("span",{cls:"dyn-val",text:node.value}),h("span",{cls:"dyn-at",text:node.place||""}));
}
function fxList(nodes,point,start){
const inner=h("div",{style:`height:${nodes.length * ROW}px;position:relative`});
const box=h("div",{cls:`dyn-fxlist${nodes.some((n)=>n.time)?" dyn-timed":""}`,tabindex:"0",role:"group","aria-label":`${nodes.length} nodes, arrow keys choose`,style:`height:${Math.min(HEIGHT,nodes.length * ROW + 2)}px`},inner);
const rows=new Map();
let now=start,from=0;
const choose=(i)=>{
if(rows.has(now))rows.get(now).setAttribute("aria-pressed","false");
now=i;
point(nodes[i]);
draw();
box.focus({preventScroll:true});
rows.get(i).setAttribute("aria-pressed","true");
};
const draw=()=>{
const first=Math.max(0,Math.floor(box.scrollTop / ROW)- 3),end=Math.min(nodes.length,first + Math.ceil(HEIGHT / ROW)+ 6);
for(const[i,row]of rows){
if(i>=first&&i<end)continue;
row.remove();
rows.delete(i);
}
const fresh=[];
for(let i=first;i<end;i++){
if(rows.has(i))continue;
rows.set(i,fxRow(nodes[i],i,choose,now));
fresh.push(rows.get(i));
}
inner[first<from?"prepend":"append"](...fresh);
from=first;
};
box.addEventListener("keydown",(event)=>{
const to={ArrowDown:now + 1,ArrowUp:now - 1,Home:0,End:nodes.length - 1}[event.key];
if(to===undefined||!nodes[to])return;
const top=to * ROW;
if(top<box.scrollTop||top + ROW>box.scrollTop + box.clientHeight)box.scrollTop=to<now?top:top + ROW - box.clientHeight;
choose(to);
event.preventDefault();
event.stopPropagation();
});
box.addEventListener("scroll",draw);
requestAnimationFrame(()=>{box.scrollTop=start * ROW;});
draw();
return box;
}
function shapesOf(drawing,nodes){
const boxes=drawing.boxes.map(([x,y,w,h],i)=>{
const fold=drawing.folds&&drawing.folds[i],at=fold?fold.first:drawing.first + i,place={at,x,y,w,h,title:drawing.titles[i],note:drawing.notes[i]};
if(!fold)return{...nodes[at],...place,id:String(at)};
return{...place,id:`${at}+${fold.count}`,kind:fold.name==="inputs"?"input":"fold",full:`${fold.name}: ${fold.count} nodes`,heat:fold.heat,inside:shapesOf(fold.inside,nodes)};
});
const arrows=drawing.edges.map((points,i)=>({points,source:boxes[drawing.joined[i][0]].id,target:boxes[drawing.joined[i][1]].id}));
return{width:drawing.width,height:drawing.height,groups:[],boxes,arrows:arrows.filter((a)=>a.points.length>1)};
}
function fxShape(b){
if(b.kind==="unfolded")return openShape(b);
const middle=b.x + b.w / 2,round=b.kind==="input"||b.kind==="output"?14:5;
const text=(x,y,text,cls,anchor="middle")=>text&&s("text",{cls,x,y,text,"text-anchor":anchor});
return[s("rect",{x:b.x,y:b.y,width:b.w,height:b.h,rx:round}),
...(b.inside?[triangle(b,false),text(b.x + 26,b.y + 17,b.title,"","start"),text(b.x + 26,b.y + 31,b.note,"dyn-fxval","start")]
:[text(middle,b.y +(b.time?17:b.h / 2 + 4),b.title),text(middle,b.y + 31,b.time,"dyn-fxval"),text(middle,b.y + b.h + 11,b.note,"dyn-fxval")])];
}
function fxPicture(drawing,nodes,point,name,open,changed){
const whole=shapesOf(drawing,nodes),pane=h("div",{cls:"dyn-fxpane"});
let shown=[],parts=new Map(),arrows=[],now="";
function draw(){
const picture=unfolded(whole,open);
shown=[...picture.groups,...picture.boxes].sort((a,b)=>a.at - b.at);
parts=new Map(shown.map((b)=>[b.id,s("g",{cls:`dyn-fxnode dyn-fx-${b.kind}${b.kind==="unfolded"?" dyn-k-unfolded":b.heat===undefined?"":" dyn-hot"}`,style:hot(b),role:"button",tabindex:"-1","data-id":b.id,
"aria-expanded":b.inside?String(open.has(b.id)):null},s("title",{text:b.full +(b.place?`\n${b.place}`:"")}),...fxShape(b))]));
arrows=picture.arrows.map((a)=>[a,s("path",{cls:"dyn-arrow",d:rounded(a.points,5)})]);
pane.replaceChildren(s("svg",{width:picture.width,height:picture.height,role:"group","aria-label":name},
...picture.groups.map((b)=>parts.get(b.id)),...arrows.map(([,path])=>path),...picture.boxes.map((b)=>parts.get(b.id))));
stop(parts.has(now)?now:shown[0].id);
light();
changed();
}
function light(){
for(const[id,part]of parts)part.setAttribute("aria-pressed",String(id===now));
for(const[a,path]of arrows)path.classList.toggle("dyn-on",a.source===now||a.target===now);
}
function stop(id){
const before=pane.querySelector("[tabindex='0']"),at=parts.get(id);
if(before)before.setAttribute("tabindex","-1");
at.setAttribute("tabindex","0");
return at;
}
function act(id){
const b=shown.find((other)=>other.id===id),place=()=>parts.get(id).getBoundingClientRect(),before=place();
now=id;
point(b);
if(!b.inside)return light();
if(!open.delete(id))open.add(id);
draw();
const after=place(),top=pane.getBoundingClientRect().top + 30;
pane.scrollLeft +=after.left - before.left;
pane.scrollTop +=after.top -(open.has(id)?Math.min(before.top,top):before.top);
parts.get(id).focus({preventScroll:true});
}
pane.addEventListener("click",(event)=>{
const hit=event.target.closest(".dyn-fxnode");
if(hit)act(hit.dataset.id);
});
pane.addEventListener("keydown",(event)=>{
const{id}=event.target.closest(".dyn-fxnode").dataset,i=shown.findIndex((b)=>b.id===id);
const to=shown[{ArrowDown:i + 1,ArrowRight:i + 1,ArrowUp:i - 1,ArrowLeft:i - 1,Home:0,End:shown.length - 1}[event.key]];
if(event.key==="Enter"||event.key===" ")act(id);
else if(to){
const part=stop(to.id);
part.focus({preventScroll:true});
reveal(pane,to.kind==="unfolded"?part.querySelector("text"):part.querySelector("rect"));
}else return;
event.preventDefault();
event.stopPropagation();
});
draw();
requestAnimationFrame(()=>{pane.scrollLeft=shown[0].x +(shown[0].w - pane.clientWidth)/ 2;});
return{pane,fold(){open.clear();draw();}};
}
const KINDS={input:"input",param:"parameter",matmul:"matmul, conv, module",point:"pointwise",reduce:"reduction",shape:"shape, index",output:"output"};
function fxView(body,pointAt,name,open){
const{nodes,picture}=body,told=h("div",{cls:"dyn-told",role:"status"}),pane=h("div");
const kinds=[...new Set(nodes.map((n)=>n.kind))];
const key=h("div",{cls:"dyn-legend"},...kinds.map((k)=>h("span",{},h("i",{cls:`dyn-dot dyn-fx-${k}`}),KINDS[k]||k)),
nodes.some((n)=>n.time)?h("span",{},h("i",{cls:"dyn-heatkey"}),"time alone, eager"):null);
let listed=false,at=-1;
const point=(node)=>{
at=node.at===undefined?nodes.indexOf(node):node.at;
told.textContent=node.full +(node.place?`  ·  ${node.place}`:"");
if(node.line)pointAt(node.file,node.line);
};
const kind=h("button",{cls:"dyn-btn",type:"button",onclick:()=>{listed=!listed;show();}});
const fold=h("button",{cls:"dyn-btn",type:"button",text:"Fold all",onclick:()=>drawn.fold()});
const buttons=()=>{
kind.textContent=listed?"As a graph":"As a list";
fold.hidden=listed||!open.size;
};
const drawn=fxPicture(picture,nodes,point,name,open,buttons);
function show(){
pane.replaceChildren(listed?fxList(nodes,point,at):drawn.pane);
buttons();
}
if(picture.folds)told.textContent=`${nodes.length} nodes, folded into ${picture.folds.length}: click one to open it`;
show();
return h("div",{cls:"dyn-fx"},h("div",{cls:"dyn-fxbar"},key,h("div",{cls:"dyn-fxtools"},fold,kind)),pane,told);
}
function prose(text){
return text.split("`").map((part,i)=>(i % 2?h("code",{text:part}):part));
}
const PAINTED=40_000;
function codePart({text,lang,start}){
const pre=h("pre",{cls:lang==="prose"?"dyn-code dyn-wrap":"dyn-code",tabindex:"0"});
if(lang!=="python"||text.length>PAINTED)pre.textContent=text;
else{
let open="";
const lines=text.split("\n");
lines.forEach((line,i)=>{
const box=h("span",start?{"data-n":start + i,cls:"dyn-cl"}:{});
open=paintCode(box,line,[],open);
pre.append(box,i + 1<lines.length?"\n":"");
});
}
return pre;
}
function copyButton(text,label){
const button=h("button",{cls:"dyn-btn",type:"button",text:label});
button.addEventListener("click",async()=>{
button.textContent=(await copyText(text))?"copied":"could not copy";
setTimeout(()=>{button.textContent=label;},1500);
});
return button;
}
function runBody(body,ctx){
const devices=ctx.host.get("devices")||[],on=h("select",{"aria-label":"device",cls:"dyn-select"},h("option",{value:"",text:"as recorded"}),...devices.map((d)=>h("option",{value:d,text:d})));
const run=()=>ctx.request({kind:"run_graph",graph:body.graph,device:on.value||null});
return h("div",{cls:"dyn-prose dyn-run"},...body.text.map((t)=>h("p",{text:t})),
h("div",{cls:"dyn-row"},ctx.canRun()?[h("button",{cls:"dyn-btn dyn-primary",type:"button",text:body.groups.length?"Run it again":"Run this graph",onclick:run}),devices.length>1?on:null]:null,
h("code",{text:body.code}),copyButton(body.code,"Copy")),
...body.groups.map((g)=>h("div",{},h("h3",{text:g.title}),...g.bars.map((b)=>h("div",{cls:"dyn-figure"},
h("span",{text:b.label}),h("i",{style:`--h:${b.part}%`}),h("b",{text:b.value}))))));
}
function partBody(part,ctx,name,open){
const{body}=part;
if(part.kind==="code")return codePart(body);
if(part.kind==="source")return codePart({text:sourceText(ctx.content.lens,body),lang:"python",start:body.start});
if(part.kind==="graph")return fxView(body,ctx.point,name,open);
if(part.kind==="run")return runBody(body,ctx);
if(part.kind==="issue")return h("div",{},h("div",{cls:"dyn-row"},copyButton(body,"Copy text for an issue")),h("pre",{cls:"dyn-code dyn-wrap",tabindex:"0",text:body}));
if(part.kind==="prose"){
return h("div",{cls:"dyn-prose"},...body.text.map((t)=>h("p",{},...prose(t))),
body.todo.length?[h("h3",{text:"What to do"}),h("ul",{},...body.todo.map((t)=>h("li",{},...prose(t))))]:null,
...body.code.map((t)=>h("pre",{cls:"dyn-code dyn-wrap",text:t})));
}
if(part.kind==="stack"){
return h("ol",{cls:"dyn-stack"},...body.map((e)=>h("li",{},
h("button",{cls:"dyn-link",type:"button",text:e.place,onclick:()=>ctx.point(e.file,e.line)}),` in ${e.function}`,e.source?h("code",{text:e.source}):null)));
}
return h("table",{cls:"dyn-table"},h("tbody",{},...body.map(([a,b,c,id])=>h("tr",{},
h("td",{},id&&ctx.has(id)?h("button",{cls:"dyn-link",type:"button",text:a,onclick:()=>ctx.select(id)}):h("span",{cls:"dyn-monot",text:a})),
h("td",{cls:"dyn-monot",text:b}),h("td",{text:c})))));
}
const MARKS={break:"✂",graph:"▦",skipped:"–",failed:"✗",empty:"∅",resume:"↳",autograd:"↶",fold:"⋯"};
function detailView(ctx){
const node=h("section",{cls:"dyn-detail","aria-label":"detail",tabindex:"-1"});
const chosen=new Map(),opened=new Map();
let id="",content=null;
function tabs(detail){
const list=h("div",{cls:"dyn-tabs",role:"tablist","aria-label":"parts"});
const panel=h("div",{cls:"dyn-panel",role:"tabpanel"});
const want=chosen.get(detail.kind);
const mark=roving(list,".dyn-tab",{vertical:false,enter:(tab)=>tab.click()});
const show=(part,focus)=>{
for(const tab of list.children){
const on=tab.dataset.key===part.key;
tab.setAttribute("aria-selected",String(on));
if(on)mark(tab);
if(on&&focus)tab.focus();
}
panel.setAttribute("aria-label",part.name);
panel.replaceChildren(partBody(part,ctx,`${detail.title} ${detail.code}`,opened.get(id)));
};
for(const part of detail.parts){
list.append(h("a",{cls:"dyn-tab",role:"tab",tabindex:"-1","data-key":part.key,href:linkTo(id,part.key),text:part.name,onclick:(event)=>{
event.preventDefault();
chosen.set(detail.kind,part.key);
ctx.link(id,part.key);
show(part,true);
}}));
}
const first=detail.parts.find((p)=>p.key===want)||detail.parts[0];
if(first)show(first);
return[list,panel];
}
function switches(detail){
if(!ctx.canRun()||!detail.target||!["break","function","skipped","failed","unfinished","statements"].includes(detail.kind))return null;
const where=detail.kind==="break"?"here":"in this function";
const box=h("div",{cls:"dyn-switches",role:"group","aria-label":`error_on_graph_break ${where}`});
for(const[set,word]of[["allow","Allow"],["error","Error"]]){
const on=ctx.pending.regions.get(detail.target)===set;
box.append(h("button",{cls:"dyn-btn",type:"button","aria-pressed":String(on),"data-set":set,text:`${word} ${where}`,title:`${set==="allow"?"allow graph breaks":"fail at a graph break"} ${where}, at the next run`,
onclick:()=>{ctx.pending.region(detail.target,set);ctx.changed();node.querySelector(`.dyn-switches [data-set=${set}]`).focus();}}));
}
return box;
}
function show(model,which){
[content,id]=[model,which];
if(!opened.has(id))opened.set(id,new Set());
const detail=content.details[id];
node.hidden=false;
if(!detail){
node.replaceChildren(h("p",{cls:"dyn-hint",text:Object.keys(content.details).length?"Select a line of the source or a part of the split graph.":ctx.host.get("busy")?"Nothing was compiled yet.":"Nothing was compiled."}));
return;
}
const facts=h("dl",{cls:"dyn-facts"},...detail.facts.map(([label,value,other],i)=>[h("dt",{text:i&&detail.facts[i - 1][0]===label?"":label.trim(),cls:label.startsWith(" ")?"dyn-sub":null}),
h("dd",{},other&&ctx.has(other)?h("button",{cls:"dyn-link",type:"button",text:value,onclick:()=>ctx.select(other)}):value)]));
const links=(detail.links||[]).map(([name,url])=>h("a",{cls:"dyn-out",href:url,target:"_blank",rel:"noopener noreferrer",text:`${name} ↗`}));
node.replaceChildren(
h("div",{cls:`dyn-dhead dyn-d-${detail.kind}`},
h("h2",{cls:"dyn-dtitle"},h("span",{cls:"dyn-dkind",text:`${MARKS[detail.kind]||"▢"} ${detail.title}`}),detail.code?[" ",h("code",{text:detail.code})]:null),
h("div",{cls:"dyn-where"},h("span",{text:detail.place}),detail.copy?copyButton(detail.copy,"Copy place"):null,switches(detail),...links)),
h("div",{cls:"dyn-dbody"},h("div",{cls:"dyn-dmain"},...(detail.parts.length?tabs(detail):[])),facts));
}
return{node,show,choose:(kind,part)=>chosen.set(kind,part)};
}
const BACKENDS=["inductor","aot_eager","eager","cudagraphs"];
function headerView(ctx){
const{host,pending}=ctx;
const title=h("div",{cls:"dyn-title"});
const chips=h("div",{cls:"dyn-chips"});
const progress=h("div",{cls:"dyn-progress",role:"status"});
const controls=h("div",{cls:"dyn-controls",role:"group","aria-label":"controls"});
const note=h("div",{cls:"dyn-status",role:"status","aria-live":"polite"});
const changes=h("div",{cls:"dyn-diff"});
const printed=h("div",{cls:"dyn-printed"});
const head=h("div",{cls:"dyn-head"},title,progress,chips);
const node=h("header",{cls:"dyn-top"},head,controls,note,changes,printed);
let started=0,timer=0,saving=false;
const given=(name)=>{const v=(host.get("settings")||{})[name];return v===undefined?null:v;};
const value=(name)=>(name in pending.settings?pending.settings[name]:given(name));
const change=(name,to)=>{pending.set(name,to,given(name));ctx.changed();};
function toggle(name){
const on=value(name)===true,moot=name==="error_on_graph_break"&&value("fullgraph")===true;
return h("button",{cls:`dyn-switch${name in pending.settings?" dyn-changed":""}${moot?" dyn-moot":""}`,type:"button",role:"switch","aria-checked":String(on),text:name,
title:moot?"has no effect: fullgraph wins":null,onclick:()=>change(name,on?(given(name)===null?null:false):true)});
}
function choice(name,options){
const now=value(name),list=h("select",{"aria-label":name,cls:`dyn-select${name in pending.settings?" dyn-changed":""}`});
if(!options.some(([v])=>v===now))options=[[now,String(now)],...options];
for(const[v,text]of options){
const option=h("option",{text});
option.selected=v===now;
list.append(option);
}
list.addEventListener("change",()=>change(name,options[list.selectedIndex][0]));
return h("label",{cls:"dyn-choice"},h("span",{text:name}),list);
}
function drawControls(){
const busy=host.get("busy")&&!ctx.gone,can=ctx.canRun(),parts=[];
const within=controls.contains(document.activeElement)?[...controls.querySelectorAll("button,select,input")].indexOf(document.activeElement):-1;
const known=Object.keys(host.get("settings")||{}).length>0;
if(can){
if(known)parts.push(toggle("fullgraph"),toggle("error_on_graph_break"),choice("backend",BACKENDS.map((b)=>[b,b])),
choice("dynamic",[[null,"auto"],[true,"true"],[false,"false"]]),
choice("device",[[null,"default"],["cpu","cpu"],["cuda","cuda"]]));
parts.push(h("span",{cls:"dyn-spacer"}));
const count=pending.count;
const run=h("button",{cls:"dyn-btn dyn-primary",type:"button",text:count?`Run again (${count} change${count>1?"s":""})`:"Run again",onclick:()=>ctx.request(pending.request())});
run.disabled=Boolean(busy);
parts.push(run);
if(busy)parts.push(h("button",{cls:"dyn-btn",type:"button",text:"Stop",onclick:()=>ctx.request({kind:"stop"})}));
}
if(host.live&&!ctx.gone){
const path=h("input",{cls:"dyn-search","aria-label":"path of the report",type:"text"});
path.value="report.html";
const save=()=>{saving=false;ctx.request({kind:"save",path:path.value});drawControls();};
path.addEventListener("keydown",(event)=>{if(event.key==="Enter")save();event.stopPropagation();});
if(saving)parts.push(path);
parts.push(h("button",{cls:"dyn-btn",type:"button",text:"Save",title:"save as .html, .json, .svg, .dot or .txt",onclick:()=>{if(saving)save();else{saving=true;drawControls();path.focus();}}}));
}
const command=host.get("command");
const regions=[...pending.regions].map(([target,set])=>h("button",{cls:"dyn-chip dyn-changed",type:"button",text:`${/^\d/.test(target)?"line ":""}${target}: ${set} ×`,title:"take this change back",onclick:()=>{pending.region(target,set);ctx.changed();}}));
if(command&&can)parts.push(h("div",{cls:"dyn-command"},...regions,h("code",{text:command}),copyButton(command,"Copy")));
else parts.push(...regions);
controls.replaceChildren(...parts);
if(can&&controls.parentNode!==node)node.insertBefore(controls,note);
else if(!can&&controls.parentNode!==head)head.append(controls);
controls.hidden=!parts.length;
if(within>=0)(controls.querySelectorAll("button,select,input")[within]||controls.querySelector("button")||controls).focus();
}
function drawProgress(){
const now=host.get("now")||{};
clearInterval(timer);
progress.hidden=!("frames" in now)||ctx.gone;
if(progress.hidden)return;
started=Date.now()- 1000 *(now.seconds||0);
const tell=()=>{
const n=(count,word)=>`${count||0} ${word}${count===1?"":"s"}`;
progress.replaceChildren(h("i",{cls:"dyn-spin"}),`compiling ${now.now||"…"} · ${n(now.frames,"frame")} · ${n(now.graphs,"graph")} · ${n(now.breaks,"break")} · ${clock((Date.now()- started)/ 1000)}`);
};
tell();
timer=setInterval(()=>{if(host.get("busy")&&!ctx.gone)tell();else clearInterval(timer);},500);
}
function drawNotes(){
const status=host.get("status")||{};
const lines=[];
if(ctx.local)lines.push([ctx.local,"warning"]);
else if(status.text)lines.push([status.text,status.kind]);
if(host.get("edited"))lines.push(["the cell was edited since this run","warning"]);
for(const text of ctx.content?ctx.content.notes:[])lines.push([text,"note"]);
note.replaceChildren(...lines.map(([text,kind])=>h("div",{cls:`dyn-say dyn-say-${/^\w+$/.test(kind||"")?kind:"note"}`,text,tabindex:text.length>300?"0":null})));
const diff=host.get("diff");
changes.replaceChildren(diff?h("details",{},h("summary",{text:`since the run before: ${diff.summary}`}),h("ul",{},...[...diff.lines,diff.times].map((text)=>h("li",{text})))):"");
const out=host.get("printed")||[];
printed.replaceChildren(...(out.length?[h("details",{open:true},h("summary",{text:"output of the run"}),...out.map((o)=>h("pre",{cls:`dyn-o dyn-o-${o.type==="error"?"error":"stream"}`,text:o.text})))]:[]));
}
function draw(content){
title.replaceChildren(h("b",{role:"heading","aria-level":host.live?2:1,text:content.name.length>90?content.name.slice(0,60)+ "…" + content.name.slice(-28):content.name,title:content.name})," ",
h("span",{cls:"dyn-counts"},...content.counts.flatMap(([number,words],i)=>[i?" · ":"",number?h("strong",{text:number}):"",number&&words?" ":"",words])));
const settings=content.settings,fixed=[];
if(!host.get("can_run_again")){
for(const name of["backend","mode","device"])if(settings[name])fixed.push({text:String(settings[name]).slice(0,60),kind:"plain"});
for(const name of["fullgraph","error_on_graph_break"])if(settings[name])fixed.push({text:name,kind:"plain"});
}
chips.replaceChildren(...[...content.chips,...fixed].map((c)=>(c.id
?h("button",{cls:`dyn-chip dyn-c-${c.kind}`,type:"button",text:c.text,title:c.full,onclick:()=>ctx.select(c.id)})
:h("span",{cls:`dyn-chip dyn-c-${c.kind}`,text:c.text,title:c.full}))));
chips.hidden=!chips.children.length;
drawControls();
drawProgress();
drawNotes();
}
return{node,draw,drawControls,drawProgress,drawNotes,stop:()=>clearInterval(timer)};
}
function breaksView(select,open){
const box=h("div",{cls:"dyn-breaks",role:"listbox","aria-label":"graph breaks"});
const lamps=lamp("aria-selected");
const mark=roving(box,".dyn-brow",{enter:(row)=>{select(row.dataset.id);open();}});
box.addEventListener("click",(event)=>{
const row=event.target.closest(".dyn-brow");
if(row)select(row.dataset.id);
});
return{
node:box,
draw(content){
box.hidden=!content.breaks.length;
box.replaceChildren(...content.breaks.map((b)=>h("div",{cls:`dyn-brow dyn-o-${b.outcome}${b.allowed?" dyn-allowed":""}`,role:"option","aria-selected":"false",tabindex:"-1","data-id":b.id,title:b.type},
h("span",{cls:"dyn-cut","aria-hidden":"true",text:"✂"}),h("span",{cls:"dyn-place",text:b.place}),h("code",{text:b.code}),
h("span",{cls:"dyn-pill",text:b.allowed?"allowed":b.told}),h("span",{cls:"dyn-type",text:b.type}),
h("span",{cls:"dyn-hits",text:b.cost||(b.hits>1?`${b.hits} hits`:"")}))));
if(box.firstChild)mark(box.firstChild);
},
light(content,id){
const row=[...box.children].find((r)=>r.dataset.id===id);
lamps(row?[row]:[]);
if(row)mark(row);
return()=>reveal(box,row);
},
};
}
const ZOOM=4,MOST_ZOOM=256,NARROW=3;
const percent=(part)=>`${part>=0.1||part===0?Math.round(part * 100):(part * 100).toFixed(1)} %`;
function merged(segments,least){
const found=[];
let run=[];
const close=()=>{
const[first,last]=[run[0],run[run.length - 1]];
if(run.length<2)found.push(...run);
else{
const w=last.x + last.w - first.x;
found.push({kind:"short",lane:first.lane,x:first.x,w,label:`${run.length} short stretches`,full:`${run.length} short stretches, ${percent(w)} of the call: zoom in to tell them apart`,ids:run.map((s)=>s.id),id:(run.find((s)=>s.id)||first).id});
}
run=[];
};
for(const s of segments){
if(s.w>=least||(run.length&&run[0].lane!==s.lane))close();
if(s.w<least)run.push(s);
else found.push(s);
}
close();
return found;
}
function timeView(select,open){
const pane=h("div",{cls:"dyn-lanes"}),shares=h("ul",{cls:"dyn-shares","aria-label":"where the time goes"}),inputs=h("details",{cls:"dyn-inputs",open:true});
const title=h("h2"),told=h("div",{cls:"dyn-verdict"});
let zoom=1,time=null,now="";
const holds=new Map();
const scale=(text,name,factor)=>h("button",{cls:"dyn-btn",type:"button",text,title:name,"aria-label":name,onclick:()=>{
const middle=(pane.scrollLeft + pane.clientWidth / 2)/ zoom;
zoom=factor?Math.min(MOST_ZOOM,Math.max(1,zoom * factor)):1;
lay();
light();
pane.scrollLeft=middle * zoom - pane.clientWidth / 2;
}});
const node=h("section",{cls:"dyn-time","aria-label":"run time"},
h("div",{cls:"dyn-bar"},title,scale("−","show more of the call",1 / ZOOM),scale("+","show less of the call, larger",ZOOM),scale("fit","the whole call",0)),
told,shares,pane,inputs);
const mark=roving(pane,".dyn-seg",{vertical:false,enter:(piece)=>{pick(piece);open();}});
const lamps=lamp("aria-selected");
const pick=(piece)=>{if(piece&&piece.dataset.id)select(piece.dataset.id);};
pane.addEventListener("click",(event)=>pick(event.target.closest(".dyn-seg")));
function lay(){
const width=zoom *(pane.clientWidth||1000),shown=merged(time.segments,NARROW / width);
holds.clear();
pane.replaceChildren(...time.lanes.map((name,number)=>h("div",{cls:"dyn-lane",role:"listbox","aria-orientation":"horizontal","aria-label":`${name}, ${time.total}`,"data-name":time.lanes.length>1&&name,style:`width:${zoom * 100}%`},
...shown.filter((s)=>s.lane===number).map((s)=>piece(s,width)))));
const first=pane.querySelector(".dyn-seg");
if(first)mark(first);
}
function light(){
const on=now?[...holds].filter(([,ids])=>ids.includes(now)).map(([part])=>part):[];
lamps(on);
return()=>{if(zoom>1)reveal(pane,on[0]);};
}
function piece(s,width){
const tone=s.tone===undefined?"":`;--dyn-tone:var(--dyn-g${s.tone});--dyn-tint:var(--dyn-g${s.tone}-tint)`;
const part=h("div",{cls:`dyn-seg dyn-k-${s.kind}`,role:"option","aria-selected":"false",tabindex:"-1","data-id":s.id,title:s.full,"aria-label":s.full,
style:`left:${s.x * 100}%;width:${s.w * 100}%${tone}`},h("span",{text:s.kind==="unaccounted"||s.w * width<6 * Math.min(8,s.label.length)+ 8?"":s.label}));
holds.set(part,s.ids||[s.id]);
return part;
}
return{
node,
draw(content){
time=content.time;
node.hidden=!time;
if(!time)return;
title.textContent=`Run time · ${time.median} a call under the profiler (${time.spread}; ${time.calls} calls)`;
title.title=time.devices;
told.replaceChildren(...[time.verdict,time.first].filter(Boolean).map((text,i)=>(text===time.first&&time.first_id
?h("button",{cls:"dyn-first",type:"button",text,onclick:()=>select(time.first_id)}):h("p",{text}))));
shares.replaceChildren(...time.shares.map((s)=>h("li",{title:s.full},h("i",{cls:`dyn-swatch dyn-k-${s.kind}`,"aria-hidden":"true"}),`${s.name} `,h("b",{text:percent(s.part)}))));
inputs.hidden=!time.inputs.length;
inputs.replaceChildren(h("summary",{text:time.inputs_told}),h("table",{},...time.inputs.map((run,number)=>h("tr",{cls:`dyn-in-${run.outcome}`},h("td",{text:`${number + 1}`}),h("td",{},h("code",{text:run.arguments})),
h("td",{},run.id?h("button",{cls:"dyn-link",type:"button",text:run.words,onclick:()=>select(run.id)}):run.words)))));
lay();
},
light(content,id){
now=id;
return light();
},
};
}
const SCHEMA=1;
const PATIENCE=3000;
const GONE="kernel gone: run the cell again";
function mount(root,host){
const view=h("div",{cls:"dyn"});
let selected="",shown="",drawnFor=null;
const ctx={
host,pending:pending(),content:null,local:"",gone:false,
select,point:(file,line)=>lens.point(file,line),has:(id)=>Boolean(ctx.content&&ctx.content.details[id]),
canRun:()=>Boolean(host.get("can_run_again"))&&!ctx.gone,
changed:()=>{header.drawControls();if(ctx.content)detail.show(ctx.content,selected);},
link:(id,part)=>host.link(linkTo(id,part)),
request,
};
const open=()=>detail.node.focus({preventScroll:false});
const header=headerView(ctx),breaks=breaksView(select,open),time=timeView(select,open),lens=lensView(select),split=splitView(select,open),detail=detailView(ctx);
const source=h("section",{cls:"dyn-lens","aria-label":"source"},h("div",{cls:"dyn-bar"},h("h2",{text:"Source"})),lens.node);
view.append(header.node,breaks.node,time.node,h("div",{cls:"dyn-mid"},source,split.node),detail.node);
root.replaceChildren(view);
const stopTheme=followTheme(view);
function select(id){
if(!ctx.has(id))return;
selected=id;
light();
if(host.get("selected")!==id)host.set("selected",id);
host.link(linkTo(id,""));
}
function light(look=true){
const{content}=ctx;
const reveals=[breaks,time,split,lens].map((part)=>part.light(content,selected));
if(shown!==selected||drawnFor!==content)detail.show(content,selected);
[shown,drawnFor]=[selected,content];
if(look)for(const show of reveals)show();
}
function clear(){
ctx.pending.clear();
if(ctx.content)detail.show(ctx.content,selected);
}
function request(message){
if(message.kind==="stop"&&host.get("running")&&host.interrupt())return;
ctx.local="";
header.drawNotes();
host.ask(message,PATIENCE).then((answer)=>{
if(answer==="done"&&message.kind==="run_again")clear();
if(answer==="gone")ctx.local=host.get("busy")?"no answer: the kernel is busy or gone":GONE;
header.drawNotes();
header.drawControls();
});
}
function draw(){
const content=host.get("content");
if(!content||content.schema!==SCHEMA){
view.classList.add("dyn-waiting");
header.drawProgress();
header.drawNotes();
header.drawControls();
return;
}
view.classList.remove("dyn-waiting");
ctx.content=content;
view.setAttribute("role","region");
view.setAttribute("aria-label",`dynascope view: ${content.headline.slice(0,300)}`);
source.querySelector("h2").textContent=content.lens.length===1?`Source · ${content.lens[0].label}`:"Source";
source.hidden=!content.lens.length;
view.querySelector(".dyn-mid").classList.toggle("dyn-alone",!content.lens.length);
split.node.hidden=!content.split.boxes.length&&!content.split.groups.length;
source.parentNode.hidden=source.hidden&&split.node.hidden;
header.draw(content);
breaks.draw(content);
time.draw(content);
lens.draw(content);
split.draw(content);
const wanted=[host.get("selected"),selected,content.first].find((id)=>id&&content.details[id]);
selected=wanted||"";
light(shown!==selected);
}
view.addEventListener("keydown",(event)=>{
if(event.key!=="Escape")return;
const stop=split.node.querySelector('.dyn-node[tabindex="0"]');
if(stop&&detail.node.contains(document.activeElement))stop.focus();
event.stopPropagation();
});
const stops=[
host.on("content",draw),
host.on("selected",()=>{const id=host.get("selected");if(id!==selected&&ctx.has(id)){selected=id;light();}}),
host.on("now",header.drawProgress),
...["settings","busy","can_run_again","command"].map((name)=>host.on(name,()=>{
if(name==="settings")clear();
if(name==="can_run_again"&&ctx.content)detail.show(ctx.content,selected);
header.drawControls();
header.drawNotes();
})),
...["status","edited","diff","printed"].map((name)=>host.on(name,()=>{ctx.local="";header.drawNotes();})),
];
const gone=()=>{
if(ctx.gone)return;
ctx.gone=true;
ctx.local=GONE;
draw();
};
if(host.connection)stops.push(host.connection(()=>host.ask({kind:"ping"},PATIENCE).then((answer)=>{if(answer==="gone")gone();})));
const follow=(hash)=>{
const link=parseLink(hash);
if(!link)return;
if(link.part){
const content=host.get("content"),at=content&&content.details[link.id];
if(at)detail.choose(at.kind,link.part);
}
selected=link.id;
shown="";
if(ctx.content&&ctx.has(link.id))light();
};
if(host.hash)follow(host.hash(follow));
draw();
return()=>{
stopTheme();
header.stop();
split.stop();
for(const stop of stops)stop();
};
}
function widgetHost(model){
let next=0,content=null,turn=0;
const waiting=new Map(),draws=new Set();
const read=()=>{
const given=model.get("content"),mine=++turn;
const put=(whole)=>{
if(mine!==turn)return;
content=whole;
for(const draw of draws)draw();
};
if(given&&given.gzip)unzipped(given.gzip).then(put);
else put(given);
};
model.on("change:content",read);
read();
const heard=(message)=>{
if(message&&message.kind==="ack"&&waiting.has(message.id))waiting.get(message.id)("done");
};
model.on("msg:custom",heard);
return{
live:true,
get:(name)=>(name==="content"?content:model.get(name)),
set(name,value){
model.set(name,value);
try{model.save_changes();}catch{}
},
on(name,act){
if(name==="content"){
draws.add(act);
return()=>draws.delete(act);
}
model.on(`change:${name}`,act);
return()=>model.off(`change:${name}`,act);
},
link:()=>{},
connection(act){
model.on("comm_live_update",act);
return()=>model.off("comm_live_update",act);
},
interrupt(){
const kernel=model.widget_manager&&model.widget_manager.kernel;
if(!kernel||!kernel.interrupt)return false;
kernel.interrupt();
return true;
},
ask:(message,patience)=>new Promise((resolve)=>{
const id=`${Date.now()}-${next++}`;
const settle=(answer)=>{waiting.delete(id);clearTimeout(timer);resolve(answer);};
const timer=setTimeout(()=>settle("gone"),patience);
waiting.set(id,settle);
try{model.send({...message,id});}catch{settle("gone");}
}),
close(){
model.off("msg:custom",heard);
model.off("change:content",read);
},
};
}
function pageHost(content){
const values={content,selected:"",settings:content.settings,busy:false,can_run_again:false};
return{
live:false,
get:(name)=>values[name],
set:(name,value)=>{values[name]=value;},
on:()=>()=>{},
link:(hash)=>{clearTimeout(values.link);values.link=setTimeout(()=>history.replaceState(null,"",hash));},
hash:(act)=>{addEventListener("hashchange",()=>act(location.hash));return location.hash;},
ask:async()=>"gone",
close:()=>{},
};
}
export function render({model,el}){
el.classList.add("dyn-widget");
const host=widgetHost(model);
const stop=mount(el,host);
return()=>{
stop();
host.close();
};
}
export function mountPage(root,content){
return mount(root,pageHost(content));
}
export default{render};
